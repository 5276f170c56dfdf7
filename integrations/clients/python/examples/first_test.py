"""Has the sign-up of https://example.com tested: BASE_URL=… API_KEY=… python3 first_test.py"""

import os

import humanqa
from humanqa.types import HostedStatus, JobSummary, NewJob, SubmittedJob

client = humanqa.Client(os.environ["BASE_URL"], os.environ["API_KEY"])
test: NewJob = {
    "url": "https://example.com", "title": "Sign-up", "jobType": "Custom", "description": "Can a new user sign up?",
    "checklistItems": [{"description": "The form accepts a valid address", "severity": "critical"}],
}
job: SubmittedJob = client.post("/v1/jobs", test)
print("submitted", job["jobId"], flush=True)
if os.environ["API_KEY"].startswith("qa_test_"):  # in a sandbox a robot tests
    client.post(f"/v1/sandbox/jobs/{job['jobId']}/play", {"summary": "Works."})

ended: HostedStatus = client.wait(job["jobId"])
if "result" in ended:
    print(ended["result"]["overallStatus"], ended["result"]["summary"])
else:
    print(ended["status"], ended["statusMessage"])
tested: JobSummary
for tested in client.list("/v1/jobs", "jobs", {"status": "completed", "limit": 1}):
    print("tested", tested["id"], tested["title"])
