echo "hello from the shell" | aws s3 cp - "s3://$BUCKET_NAME/hello/shell"
aws s3 cp "s3://$BUCKET_NAME/hello/shell" -
