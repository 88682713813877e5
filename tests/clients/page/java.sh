keytool -importcert -noprompt -alias system-s3 -file "$AWS_CA_BUNDLE" -keystore /tmp/trust.p12 -storepass changeit
exec java -Djavax.net.ssl.trustStore=/tmp/trust.p12 -Djavax.net.ssl.trustStorePassword=changeit -cp "/app/lib/*" "$@"
