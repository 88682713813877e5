import os

import boto3

s3, bucket = boto3.client("s3"), os.environ["BUCKET_NAME"]
s3.put_object(Bucket=bucket, Key="hello/python", Body=b"hello from Python")
print(s3.get_object(Bucket=bucket, Key="hello/python")["Body"].read().decode())
