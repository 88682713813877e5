"""The consumer of the client matrix that is written in Python: boto3 on its default configuration."""

import os
import ssl
import sys
import time
import urllib.request

import boto3
from boto3.s3.transfer import TransferConfig

prefix, large, listed, many, past = sys.argv[1], *map(int, sys.argv[2:6])
bucket = os.environ["BUCKET_NAME"]
s3 = boto3.client("s3")
small = os.urandom(1000)


def get(key, **more):
    return s3.get_object(Bucket=bucket, Key=prefix + key, **more)["Body"].read()


def put(key, body):
    s3.put_object(Bucket=bucket, Key=prefix + key, Body=body)


def keys(below):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=below)
    return [o["Key"] for page in pages for o in page.get("Contents", [])]


def fetch(url, method, body=None):
    trust = ssl.create_default_context(cafile=os.environ["AWS_CA_BUNDLE"])
    request = urllib.request.Request(url, data=body, method=method)
    request.add_header("Content-Type", "")
    with urllib.request.urlopen(request, context=trust) as answer:
        return answer.read()


def check(condition, text):
    if not condition:
        raise RuntimeError(text)


def do_put():
    put("small", small)


def do_get():
    check(get("small") == small, "other content")


def do_range():
    check(get("small", Range="bytes=100-299") == small[100:300], "other content")


def do_multipart():
    content = os.urandom(large)
    with open("/tmp/large", "wb") as file:
        file.write(content)
    s3.upload_file("/tmp/large", bucket, prefix + "large", Config=TransferConfig(multipart_threshold=8 << 20))
    check(get("large") == content, "other content")


def do_copy():
    s3.copy_object(Bucket=bucket, Key=prefix + "copy", CopySource={"Bucket": bucket, "Key": prefix + "small"})
    check(get("copy") == small, "other content")


def do_list():
    found = len(keys("list/"))
    check(found == listed, f"{found} objects, want {listed}")


def do_delete():
    found = keys(prefix + "many/")
    check(len(found) == many, f"{len(found)} objects before, want {many}")
    for i in range(0, len(found), 1000):
        batch = [{"Key": key} for key in found[i : i + 1000]]
        answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": batch})
        check(not answer.get("Errors"), answer.get("Errors"))
    check(not keys(prefix + "many/"), "some are left")


def do_presign_get():
    url = s3.generate_presigned_url("get_object", {"Bucket": bucket, "Key": prefix + "small"}, 60)
    check(fetch(url, "GET") == small, "other content")


def do_presign_put():
    url = s3.generate_presigned_url("put_object", {"Bucket": bucket, "Key": prefix + "signed"}, 60)
    fetch(url, "PUT", small)
    check(get("signed") == small, "other content")


def do_past_expiry():
    end = time.monotonic() + past
    while time.monotonic() < end:
        content = os.urandom(1000)
        put("living", content)
        check(get("living") == content, "other content")
        time.sleep(0.5)


for name, function in list(globals().items()):
    if not name.startswith("do_"):
        continue
    started = time.monotonic()
    verdict, text = "ok", ""
    try:
        function()
        text = f"{time.monotonic() - started:.3f}s"
    except Exception as error:  # whatever it is, it is what the matrix tells
        verdict, text = "failed", " ".join(f"{type(error).__name__}: {error}".split())
    print(name.removeprefix("do_").replace("_", "-"), verdict, text, sep="\t", flush=True)
