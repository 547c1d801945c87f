"""The services' own clients, for the tests of the object store connectors.

Started as `object_store_client.py KIND SETTINGS` with KIND s3, azure or gcs and SETTINGS in JSON. Reads one
request per line, `{"op": ..., "key": ..., "body": base64}`, and answers each with one line of JSON.
"""

import base64
import json
import sys


class S3:
    def __init__(self, url, bucket):
        self.url, self.bucket = url, bucket

    def connect(self, service, key, secret):
        import boto3
        from botocore.config import Config

        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            config=Config(s3={"addressing_style": "path"}),
        )

    def create(self):
        """Makes a user, a role the user may assume with an external id, and the bucket."""
        iam = self.connect("iam", "unchecked", "unchecked")
        everything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
        iam.create_user(UserName="tester")
        made = iam.create_access_key(UserName="tester")["AccessKey"]
        key = {"key": made["AccessKeyId"], "secret": made["SecretAccessKey"]}
        iam.put_user_policy(UserName="tester", PolicyName="all", PolicyDocument=json.dumps(everything))
        # From here on the server checks signatures.
        self.client = self.connect("s3", **key)
        self.client.create_bucket(Bucket=self.bucket)
        iam = self.connect("iam", **key)
        trust = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"AWS": "*"},
                    "Action": "sts:AssumeRole",
                    "Condition": {"StringEquals": {"sts:ExternalId": "outside"}},
                }
            ],
        }
        role = iam.create_role(RoleName="reader", AssumeRolePolicyDocument=json.dumps(trust))["Role"]
        iam.put_role_policy(RoleName="reader", PolicyName="all", PolicyDocument=json.dumps(everything))
        return {**key, "role_arn": role["Arn"]}

    def put(self, key, body):
        self.client.put_object(Bucket=self.bucket, Key=key, Body=body)

    def get(self, key):
        try:
            return self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        except self.client.exceptions.NoSuchKey:
            return None

    def delete(self, key):
        self.client.delete_object(Bucket=self.bucket, Key=key)

    def list(self, prefix):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]


class Azure:
    def __init__(self, connection_string, container):
        from azure.storage.blob import ContainerClient

        self.client = ContainerClient.from_connection_string(connection_string, container)

    def sign(self):
        """A shared access signature that may read and list for an hour."""
        import datetime

        from azure.storage.blob import ContainerSasPermissions, generate_container_sas

        return generate_container_sas(
            self.client.account_name,
            self.client.container_name,
            account_key=self.client.credential.account_key,
            permission=ContainerSasPermissions(read=True, list=True),
            expiry=datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1),
        )

    def create(self):
        self.client.create_container()

    def put(self, key, body):
        self.client.upload_blob(key, body, overwrite=True)

    def get(self, key):
        from azure.core.exceptions import ResourceNotFoundError

        try:
            return self.client.download_blob(key).readall()
        except ResourceNotFoundError:
            return None

    def delete(self, key):
        self.client.delete_blob(key)

    def list(self, prefix):
        return [blob.name for blob in self.client.list_blobs(name_starts_with=prefix)]


class Gcs:
    def __init__(self, url, bucket):
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import storage

        self.client = storage.Client(
            project="test", credentials=AnonymousCredentials(), client_options={"api_endpoint": url}
        )
        self.bucket = self.client.bucket(bucket)

    def create(self):
        self.client.create_bucket(self.bucket)

    def put(self, key, body):
        self.bucket.blob(key).upload_from_string(body)

    def get(self, key):
        from google.api_core.exceptions import NotFound

        try:
            return self.bucket.blob(key).download_as_bytes()
        except NotFound:
            return None

    def delete(self, key):
        self.bucket.blob(key).delete()

    def list(self, prefix):
        return [blob.name for blob in self.client.list_blobs(self.bucket, prefix=prefix)]


def main():
    kind, settings = sys.argv[1], json.loads(sys.argv[2])
    store = {"s3": S3, "azure": Azure, "gcs": Gcs}[kind](**settings)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            op, key = request["op"], request.get("key")
            if op == "create":
                answer = store.create()
            elif op == "put":
                answer = store.put(key, base64.b64decode(request["body"]))
            elif op == "get":
                body = store.get(key)
                answer = None if body is None else base64.b64encode(body).decode()
            elif op == "sign":
                answer = store.sign()
            elif op == "delete":
                answer = store.delete(key)
            else:
                answer = store.list(key)
            print(json.dumps({"answer": answer}), flush=True)
        except Exception as error:  # the test shows it
            print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)


main()
