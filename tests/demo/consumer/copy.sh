cd "$(mktemp -d)"
say() { echo; echo "# $*"; }

say "A small file and one of 24 MiB, which the CLI sends in parts"
echo "hello from $(aws --version)" >small.txt
head -c 25165824 /dev/urandom >large.bin
sha256sum small.txt large.bin

say "Up"
aws s3 cp --no-progress small.txt "s3://$BUCKET_NAME/small.txt"
aws s3 cp --no-progress large.bin "s3://$BUCKET_NAME/folder/large.bin"

say "What is in the bucket"
aws s3 ls --recursive --human-readable "s3://$BUCKET_NAME/"

say "Down, and compared byte by byte"
aws s3 cp --no-progress "s3://$BUCKET_NAME/small.txt" small.back
aws s3 cp --no-progress "s3://$BUCKET_NAME/folder/large.bin" large.back
cmp small.txt small.back
cmp large.bin large.back
echo "both files are the same"

say "Deleted"
aws s3 rm "s3://$BUCKET_NAME/small.txt"
aws s3 rm "s3://$BUCKET_NAME/folder/large.bin"
test -z "$(aws s3 ls --recursive "s3://$BUCKET_NAME/folder/")"
echo "gone"
