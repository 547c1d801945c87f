#!/usr/bin/env python3
"""The public Python client, unpatched, against a running server.

Starts the program named by DOCMILL_BIN (default: target/debug/docmill) on an empty directory, or uses the
server at DOCMILL_URL with the key in DOCMILL_API_KEY and the directory DOCMILL_LOCAL_ROOT, which the server's
setting `connectors.local_roots` must allow. Prints `N passed, N failed` and exits 1 when a
check failed.
"""

import inspect
import json
import logging
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import traceback
import uuid
import warnings

from unstructured_client import UnstructuredClient
from unstructured_client.models import errors
from unstructured_client.models.operations import CreateJobRequest
from unstructured_client.models.shared import BodyCreateJob, InputFiles
from unstructured_client.models.shared import JobProcessingStatus, JobStatus, WorkflowJobType
from unstructured_client.utils import BackoffStrategy, RetryConfig

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEY = "dm_key-of-the-contract-test"
PATIENCE = 120
# Without it the client retries a 5xx for half an hour, and a test would hang instead of failing.
RETRIES = RetryConfig("backoff", BackoffStrategy(50, 100, 1.5, 300), True)

PARTITION = '{"name": "Partitioner", "type": "partition", "subtype": "unstructured_api", "settings": {"strategy": "fast"}}'
CHUNK = '{"name": "Chunker", "type": "chunk", "subtype": "chunk_by_title", "settings": {"max_characters": 300}}'
NODES = '{"job_nodes": [%s, %s]}' % (PARTITION, CHUNK)

HTML = """<html><head><title>Contract</title></head><body><h1>A contract</h1>
<p>The server keeps what the client expects of it.</p>
<ul><li>First point</li><li>Second point</li></ul></body></html>"""

# The client logs every answer; those of the tests are errors on purpose.
logging.disable(logging.CRITICAL)
# Its list of connector types is open, and it warns of each type that is not in it.
warnings.filterwarnings("ignore", message="Pydantic serializer warnings")

tests = []


def test(function):
    tests.append(function)
    return function


class Server:
    """The program on a free port, with a gap between creations that the tests can wait out."""

    def __init__(self):
        self.home = tempfile.TemporaryDirectory()
        self.files = pathlib.Path(self.home.name, "files")
        self.files.mkdir()
        program = os.environ.get("DOCMILL_BIN", str(ROOT / "target" / "debug" / "docmill"))
        env = {name: value for name, value in os.environ.items() if not name.startswith("DOCMILL_")}
        env.update(
            DOCMILL_BOOTSTRAP_API_KEY=KEY,
            DOCMILL_LIMITS__CREATE_GAP_MS="1000",
            DOCMILL_DATA_DIR=os.path.join(self.home.name, "data"),
            DOCMILL_CONNECTORS__LOCAL_ROOTS=json.dumps([str(self.files)]),
        )
        self.log = open(os.path.join(self.home.name, "log"), "w+")
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0"], env=env, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        self.url = None
        for line in self.process.stdout:
            found = re.match(r"listening on (http://\S+)", line)
            if found:
                self.url = found.group(1)
                break
        if self.url is None:
            raise SystemExit(f"the server did not start: {self.read_log()}")

    def read_log(self):
        self.log.flush()
        with open(self.log.name) as log:
            return log.read()[-4000:]

    def stop(self):
        self.process.terminate()
        code = self.process.wait(timeout=PATIENCE)
        self.home.cleanup()
        return code


class Context:
    """What every test gets: the client, and how to make another one."""

    def __init__(self, url, key, files):
        self.url, self.key, self.files = url, key, pathlib.Path(files)
        self.client = self.with_url(url)

    def with_url(self, url, key=None):
        return UnstructuredClient(api_key_auth=key or self.key, server_url=url, retry_config=RETRIES)

    def create(self, request_data, files=(), client=None):
        """Creates a job, waiting out the gap between creations as the client's own tests do."""
        body = BodyCreateJob(
            request_data=request_data,
            input_files=[InputFiles(content=content, file_name=name, content_type=kind) for name, content, kind in files]
            if files
            else None,
        )
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return (client or self.client).jobs.create_job(request=CreateJobRequest(body_create_job=body))
            except errors.SDKError as error:
                if error.status_code != 429 or time.monotonic() > deadline:
                    raise
                time.sleep(float(error.headers["retry-after"]))

    def ended(self, job_id, client=None):
        deadline = time.monotonic() + PATIENCE
        while True:
            job = (client or self.client).jobs.get_job(request={"job_id": job_id}).job_information
            if job.status not in (JobStatus.SCHEDULED, JobStatus.IN_PROGRESS):
                return job
            assert time.monotonic() < deadline, f"job {job_id} does not end"
            time.sleep(0.05)

    def download(self, job_id, file_id, node_id=None):
        request = {"job_id": job_id, "file_id": file_id}
        if node_id:
            request["node_id"] = node_id
        answer = self.client.jobs.download_job_output(request=request)
        assert answer.status_code == 200
        return answer.any


def raises(kind, status, action):
    try:
        action()
    except errors.UnstructuredClientError as error:
        assert type(error) is kind, f"{type(error)} instead of {kind}"
        assert error.status_code == status, f"{error.status_code} instead of {status}: {error}"
        return error
    raise AssertionError(f"no {kind.__name__}")


@test
def templates_are_listed_and_read(context):
    answer = context.client.templates.list_templates(request={})
    assert answer.status_code == 200
    ids = [template.id for template in answer.response_list_templates]
    assert "hi_res_partition" in ids and "hi_res_and_enrichment" in ids, ids
    template = context.client.templates.get_template(request={"template_id": "hi_res_partition"}).template_detail
    assert template.nodes[0].type == "partition", template
    error = raises(errors.SDKError, 404, lambda: context.client.templates.get_template(request={"template_id": "no such"}))
    assert "Template no such not found" in str(error)


@test
def a_job_of_nodes_runs_and_every_output_is_there(context):
    files = [("one.html", HTML.encode(), "text/html"), ("zwei größer.html", HTML.replace("First", "Erster").encode(), None)]
    files = [(name, content, kind or "text/html") for name, content, kind in files]
    answer = context.create(NODES, files)
    assert answer.status_code == 200
    created = answer.job_information
    assert created.status in (JobStatus.SCHEDULED, JobStatus.IN_PROGRESS), created
    assert created.job_type == WorkflowJobType.EPHEMERAL and created.runtime is None
    uuid.UUID(created.id), uuid.UUID(created.workflow_id)
    assert created.workflow_name == f"job-{created.id[:8]}" and created.created_at.tzinfo is not None
    job = context.ended(created.id)
    assert job.status == JobStatus.COMPLETED and job.runtime.startswith("PT"), job
    assert job.input_file_ids == created.input_file_ids and len(job.input_file_ids) == 2
    for number, file_id in enumerate(job.input_file_ids):
        elements = context.download(job.id, file_id)
        text = " ".join(element["text"] for element in elements)
        assert ("First point", "Erster point")[number] in text, text
        assert elements[0]["metadata"]["filename"] == files[number][0]
    assert len(job.output_node_files) == 4
    kinds = set()
    for output in job.output_node_files:
        elements = context.download(job.id, output.file_id, output.node_id)
        assert elements and all(element["element_id"] for element in elements)
        kinds.add((output.node_type, output.node_subtype, "CompositeElement" in {e["type"] for e in elements}))
    assert kinds == {("partition", "unstructured_api", False), ("chunk", "chunk_by_title", True)}, kinds


@test
def a_job_of_a_template_runs(context):
    created = context.create('{"template_id": "hi_res_partition"}', [("t.html", HTML.encode(), "text/html")]).job_information
    job = context.ended(created.id)
    assert job.status == JobStatus.COMPLETED and job.job_type == WorkflowJobType.TEMPLATE
    assert "A contract" in str(context.download(job.id, job.input_file_ids[0]))


@test
def a_job_without_files_is_accepted_and_completes(context):
    answer = context.create(NODES)
    assert answer.status_code == 200
    assert answer.job_information.status in (JobStatus.SCHEDULED, JobStatus.IN_PROGRESS)
    job = context.ended(answer.job_information.id)
    assert job.status == JobStatus.COMPLETED and job.input_file_ids == [] and not job.output_node_files


@test
def details_and_failed_files_tell_what_happened(context):
    files = [("good.html", HTML.encode(), "text/html"), ("bad.pdf", b"%PDF-1.7 nothing", "application/pdf")]
    job = context.ended(context.create(NODES, files).job_information.id)
    assert job.status == JobStatus.COMPLETED
    details = context.client.jobs.get_job_details(request={"job_id": job.id}).job_details
    assert details.processing_status == JobProcessingStatus.COMPLETED_WITH_ERRORS, details
    assert [(node.success, node.failure, node.ready, node.in_progress) for node in details.node_stats] == [
        (1, 1, 0, 0),
        (1, 0, 0, 0),
    ]
    failed = context.client.jobs.get_job_failed_files(request={"job_id": job.id}).job_failed_files.failed_files
    assert [file.document for file in failed] == ["bad.pdf"] and failed[0].error, failed
    raises(errors.SDKError, 404, lambda: context.download(job.id, job.input_file_ids[1]))


@test
def lists_are_filtered_by_workflow_and_status(context):
    job = context.ended(context.create(NODES).job_information.id)
    listed = context.client.jobs.list_jobs(request={}).response_list_jobs
    assert job.id in [other.id for other in listed]
    for status in ("completed", "COMPLETED", "Completed"):
        request = {"workflow_id": job.workflow_id, "status": status}
        found = context.client.jobs.list_jobs(request=request).response_list_jobs
        assert [other.id for other in found] == [job.id], found
    request = {"workflow_id": job.workflow_id, "status": "in progress"}
    assert context.client.jobs.list_jobs(request=request).response_list_jobs == []
    wrong = lambda: context.client.jobs.list_jobs(request={"status": "half done"})
    assert raises(errors.HTTPValidationError, 422, wrong).data.detail[0].loc == ["query", "status"]


@test
def a_job_is_cancelled(context):
    slow = ("<html><body>" + "<p>One of very many paragraphs of plain text.</p>\n" * 150_000 + "</body></html>").encode()
    created = context.create(NODES, [("slow.html", slow, "text/html")]).job_information
    answer = context.client.jobs.cancel_job(request={"job_id": created.id})
    assert answer.status_code == 200, answer
    job = context.ended(created.id)
    assert job.status == JobStatus.STOPPED, job
    details = context.client.jobs.get_job_details(request={"job_id": job.id}).job_details
    assert details.processing_status == JobProcessingStatus.STOPPED
    # Once more changes nothing and is no error.
    assert context.client.jobs.cancel_job(request={"job_id": job.id}).status_code == 200


@test
def errors_are_of_the_classes_the_client_has(context):
    nobody = str(uuid.uuid4())
    for action in (
        lambda: context.client.jobs.get_job(request={"job_id": nobody}),
        lambda: context.client.jobs.get_job_details(request={"job_id": nobody}),
        lambda: context.client.jobs.get_job_failed_files(request={"job_id": nobody}),
        lambda: context.client.jobs.cancel_job(request={"job_id": nobody}),
        lambda: context.client.jobs.download_job_output(request={"job_id": nobody, "file_id": nobody}),
    ):
        assert "Job not found" in str(raises(errors.SDKError, 404, action))
    for data in ("{}", "not json", '{"job_nodes": []}', '{"job_nodes": [{"name": "n", "type": "shred", "subtype": "x"}]}'):
        error = raises(errors.HTTPValidationError, 422, lambda: context.create(data))
        assert error.data.detail[0].loc[:2] == ["body", "request_data"], error
    wrong = context.with_url(context.url, key="wrong")
    error = raises(errors.SDKError, 401, lambda: wrong.jobs.list_jobs(request={}))
    assert "API key is malformed, please type the API key correctly in the header." in str(error)
    # With no key at all the client sends no header.
    none = UnstructuredClient(server_url=context.url, retry_config=RETRIES)
    error = raises(errors.SDKError, 401, lambda: none.jobs.list_jobs(request={}))
    assert "API key is missing, please provide an API key in the header." in str(error)


@test
def two_creations_at_once_are_too_many(context):
    body = BodyCreateJob(request_data=NODES)
    # A machine that is slow at the wrong moment may let more than the gap go by; not every time.
    for _ in range(10):
        context.create(NODES)
        try:
            context.client.jobs.create_job(request=CreateJobRequest(body_create_job=body))
        except errors.SDKError as error:
            assert error.status_code == 429 and int(error.headers["retry-after"]) >= 1, error
            return
    raise AssertionError("no creation was refused")


@test
def too_many_files_are_a_validation_error(context):
    files = [(f"{number}.html", b"<p>x</p>", "text/html") for number in range(11)]
    error = raises(errors.HTTPValidationError, 422, lambda: context.create(NODES, files))
    assert "10" in str(error.data.detail), error


@test
def every_spelling_of_the_base_url_works(context):
    for suffix in ("", "/", "/api/v1", "/api/v1/"):
        client = context.with_url(context.url + suffix)
        created = context.create(NODES, [("a.html", HTML.encode(), "text/html")], client=client).job_information
        assert context.ended(created.id, client=client).status == JobStatus.COMPLETED, suffix
        assert client.templates.list_templates(request={}).status_code == 200
    without_scheme = context.with_url(context.url.removeprefix("http://"))
    assert without_scheme.jobs.list_jobs(request={}).status_code == 200


RESOURCES = ("jobs", "workflows", "sources", "destinations", "templates")


def operations(client):
    """Every platform operation the client has, as `resource.method`."""
    found = set()
    for resource in RESOURCES:
        for name, _ in inspect.getmembers(type(getattr(client, resource)), inspect.isfunction):
            if not name.startswith(("_", "do_")) and not name.endswith("_async"):
                found.add(f"{resource}.{name}")
    return found


@test
def every_operation_of_the_platform_works(context):
    """Files go through a stored workflow from a folder to a folder; on the way every operation is called."""
    client, done = context.client, set()

    def call(operation, expected_status=200, **request):
        resource, name = operation.split(".")
        answer = getattr(getattr(client, resource), name)(request=request)
        assert answer.status_code == expected_status, (operation, answer)
        done.add(operation)
        return answer

    expected = operations(client)
    assert len(expected) == 29, sorted(expected)

    templates = call("templates.list_templates").response_list_templates
    template = call("templates.get_template", template_id=templates[0].id).template_detail
    assert template.nodes and template.version

    folders = {name: context.files / f"{name}-{uuid.uuid4()}" for name in ("source", "destination")}
    for folder in folders.values():
        folder.mkdir()
    for number in range(3):
        (folders["source"] / f"{number}.html").write_text(HTML.replace("First", f"Number {number}"))
    ids = {}
    for role in ("source", "destination"):
        plural, config = f"{role}s", {"path": str(folders[role])}
        body = {"name": f"A {role}", "type": "local", "config": config}
        created = call(f"{plural}.create_{role}", **{f"create_{role}_connector": body})
        created = getattr(created, f"{role}_connector_information")
        ids[role] = created.id
        assert created.type == "local" and created.config["path"] == config["path"], created
        listed = call(f"{plural}.list_{plural}")
        listed = getattr(listed, f"response_list_{plural}")
        assert created.id in [connector.id for connector in listed]
        one = {f"{role}_id": created.id}
        read = getattr(call(f"{plural}.get_{role}", **one), f"{role}_connector_information")
        assert read == created
        update = {f"update_{role}_connector": {"config": config}, **one}
        updated = getattr(call(f"{plural}.update_{role}", **update), f"{role}_connector_information")
        assert updated.updated_at is not None and updated.config == created.config
        check = call(f"{plural}.create_connection_check_{plural}", 202, **one).dag_node_connection_check
        deadline = time.monotonic() + PATIENCE
        while check.status.value == "SCHEDULED":
            assert time.monotonic() < deadline
            check = call(f"{plural}.get_connection_check_{plural}", **one).dag_node_connection_check
        call(f"{plural}.get_connection_check_{plural}", **one)
        assert check.status.value == "SUCCESS", check

    nodes = json.loads(NODES)["job_nodes"]
    body = {"name": "Pipe", "workflow_type": "custom", "workflow_nodes": nodes, "schedule": "daily"}
    body.update(source_id=ids["source"], destination_id=ids["destination"])
    workflow = call("workflows.create_workflow", create_workflow=body).workflow_information
    assert workflow.sources == [ids["source"]] and workflow.destinations == [ids["destination"]], workflow
    assert workflow.schedule.crontab_entries[0].cron_expression == "0 0 * * *"
    assert [node.subtype for node in workflow.workflow_nodes] == ["unstructured_api", "chunk_by_title"]
    assert call("workflows.get_workflow", workflow_id=workflow.id).workflow_information == workflow
    listed = call(
        "workflows.list_workflows",
        source_id=ids["source"],
        destination_id=ids["destination"],
        dag_node_configuration_id=workflow.workflow_nodes[0].id,
        status="active",
        page=1,
        page_size=5,
        created_since=workflow.created_at,
        created_before=workflow.created_at,
        name="pip",
        sort_by="created_at",
        sort_direction="desc",
        show_only_soft_deleted=False,
        show_recommender_workflows=False,
    ).response_list_workflows
    assert listed == [workflow], listed
    change = {"name": "Better pipe", "schedule": "every 2 hours", "reprocess_all": True}
    changed = call("workflows.update_workflow", workflow_id=workflow.id, update_workflow=change).workflow_information
    assert changed.name == "Better pipe" and changed.reprocess_all and changed.sources == workflow.sources

    run = call("workflows.run_workflow", 202, workflow_id=workflow.id).job_information
    assert run.job_type == WorkflowJobType.PERSISTENT and run.workflow_name == "Better pipe", run
    assert context.ended(run.id).status == JobStatus.COMPLETED
    written = sorted(path.name for path in folders["destination"].iterdir())
    assert written == ["0.html.json", "1.html.json", "2.html.json"], written
    elements = json.loads((folders["destination"] / "2.html.json").read_text())
    assert "Number 2" in str(elements) and elements[0]["type"] == "CompositeElement", elements
    details = call("jobs.get_job_details", job_id=run.id).job_details
    assert details.processing_status == JobProcessingStatus.SUCCESS and details.node_stats[1].success == 3, details
    assert call("jobs.get_job_failed_files", job_id=run.id).job_failed_files.failed_files == []
    listed = call("jobs.list_jobs", workflow_id=workflow.id, status="completed").response_list_jobs
    assert [job.id for job in listed] == [run.id]
    call("jobs.get_job", job_id=run.id)
    assert call("jobs.cancel_job", job_id=run.id).any["status"] == "COMPLETED"

    # A workflow of a template, with files that come with the run.
    body = {"name": "By hand", "workflow_type": "custom", "template_id": "hi_res_partition"}
    by_hand = call("workflows.create_workflow", create_workflow=body).workflow_information
    file = {"content": HTML.encode(), "file_name": "größe.html", "content_type": "text/html"}
    files = {"input_files": [file]}
    run = call("workflows.run_workflow", 202, workflow_id=by_hand.id, body_run_workflow=files).job_information
    job = context.ended(run.id)
    request = {"job_id": job.id, "file_id": job.input_file_ids[0], "node_id": job.output_node_files[0].node_id}
    assert "First point" in str(call("jobs.download_job_output", **request).any)
    context.create(NODES)
    done.add("jobs.create_job")

    taken = {"source_id": ids["source"]}
    error = raises(errors.SDKError, 409, lambda: client.sources.delete_source(request=taken))
    assert "Better pipe" in str(error), error
    for workflow_id in (workflow.id, by_hand.id):
        call("workflows.delete_workflow", workflow_id=workflow_id)
        raises(errors.SDKError, 404, lambda: client.workflows.get_workflow(request={"workflow_id": workflow_id}))
    deleted = call("workflows.list_workflows", show_only_soft_deleted=True).response_list_workflows
    assert {workflow.id, by_hand.id} <= {other.id for other in deleted}
    call("sources.delete_source", source_id=ids["source"])
    call("destinations.delete_destination", destination_id=ids["destination"])
    assert done == expected, expected - done


@test
def mistakes_in_workflows_are_validation_errors(context):
    create = lambda **body: context.client.workflows.create_workflow(request={"create_workflow": body})
    error = raises(errors.HTTPValidationError, 422, lambda: create(name="", workflow_type="custom"))
    assert error.data.detail[0].loc == ["body", "name"], error
    error = raises(errors.HTTPValidationError, 422, lambda: create(name="w", workflow_type="basic", schedule="daily"))
    assert error.data.detail[0].loc == ["body", "schedule"], error
    wrong = lambda: context.client.workflows.list_workflows(request={"sort_by": "nothing"})
    assert raises(errors.HTTPValidationError, 422, wrong).data.detail[0].loc == ["query", "sort_by"]
    source = {"create_source_connector": {"name": "n", "type": "dropbox", "config": {"token": "t"}}}
    error = raises(errors.HTTPValidationError, 422, lambda: context.client.sources.create_source(request=source))
    assert "dropbox" in str(error) and "local" in str(error), error
    basic = create(name="w", workflow_type="basic").workflow_information
    assert basic.workflow_nodes[0].type == "partition" and basic.schedule is None and basic.sources == []


def main():
    server = None
    url, key = os.environ.get("DOCMILL_URL"), os.environ.get("DOCMILL_API_KEY")
    if not url:
        server = Server()
        url, key = server.url, KEY
    context = Context(url, key, server.files if server else os.environ["DOCMILL_LOCAL_ROOT"])
    failed = 0
    for function in tests:
        try:
            function(context)
            print(f"ok      {function.__name__}", flush=True)
        except Exception:  # whatever goes wrong fails the one test
            failed += 1
            print(f"FAILED  {function.__name__}\n{traceback.format_exc()}", flush=True)
    if server:
        if failed:
            print(f"--- end of the server's log\n{server.read_log()}")
        code = server.stop()
        if code != 0:
            failed += 1
            print(f"FAILED  the server ended with {code}")
    print(f"{len(tests) - min(failed, len(tests))} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
