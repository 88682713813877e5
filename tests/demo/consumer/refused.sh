echo "# The same CLI and the same environment, but no RoleBinding"
if aws s3 ls "s3://$BUCKET_NAME/" 2>/tmp/error; then
  echo "this must not succeed"
  exit 1
fi
cat /tmp/error
[[ $(</tmp/error) == *AccessDenied* ]]
