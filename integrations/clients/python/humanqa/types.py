# Generated from the API's document by build.py. Do not edit.
"""The bodies and answers of the API. What may be left out is NotRequired; keys that are not here may come, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired  # the type checker has it

class ReaderList(TypedDict):
    log: Optional[str]
    """The log and its generation, as in `X-Service-Log`."""
    readers: List["Reader"]
    """By name."""


class Reader(TypedDict):
    name: str
    """As it calls itself."""
    projectId: Optional[str]
    """Of a reader with a project-bound key: the project."""
    state: Literal['current', 'behind', 'refused']
    """`behind`: its oldest unread event is more than an hour old. `refused`: its cursor is not taken."""
    refused: Optional[str]
    """Why its cursor is not taken: CURSOR_AHEAD, CURSOR_GONE or ANOTHER_LOG."""
    cursor: Optional[str]
    """Its place; null before the first event."""
    types: List[str]
    """The kinds that it asks for; empty: all."""
    eventsBehind: int
    """The events behind its place that it asks for, among the next 10,000 of the account."""
    more: bool
    """There are events beyond those 10,000."""
    lagSeconds: int
    """The age of the oldest event that it has not read; 0 if there is none."""
    firstSeenAt: "Timestamp"
    lastSeenAt: "Timestamp"


class BalanceExpiringCredits(TypedDict):
    amount: int
    """What is left of a grant."""
    expiresAt: "Timestamp"


class Balance(TypedDict):
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    available: int
    """total − used."""
    used: int
    """Net of refunds."""
    total: int
    """Granted, without expired remainders."""
    expiringCredits: List["BalanceExpiringCredits"]
    """What expires within 30 days, soonest first."""


class Ledger(TypedDict):
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    entries: List["LedgerEntry"]
    """The newest first."""
    next: Optional[str]
    """`after` of the next page; null on the last."""


class LedgerEntryLots(TypedDict):
    lotId: str
    """The grant."""
    change: int
    """What the grant lost or got."""
    expired: NotRequired[int]
    """What came too late."""


class LedgerEntry(TypedDict):
    id: str
    """The entry's place in the ledger, from 0."""
    at: "Timestamp"
    kind: Literal['granted', 'debited', 'refunded', 'expired']
    """What happened."""
    amount: int
    """What it did to the balance; negative for a debit."""
    balanceAfter: int
    """The balance that the event itself says."""
    expired: int
    """What of a refund came back to credits that had expired."""
    jobId: Optional[str]
    """The job that was paid or refunded."""
    jobTitle: Optional[str]
    """Its title; null where the job never came."""
    lots: List["LedgerEntryLots"]
    """The grants it took from, or gave to."""
    by: str
    """`key:…`, `person:…`, `operator`, or `service` for what happens by itself."""
    requestId: Optional[str]
    """The x-request-id of the call."""
    reason: Optional[str]
    """Why, where somebody said."""


class ProofEvent(TypedDict):
    """What the event's leaf binds."""
    index: int
    """The leaf's place in the tree."""
    position: str
    """The event's position in the log, commit/prepare; no part of the leaf."""
    stream: str
    """The event's stream."""
    revision: int
    """The event's place in its stream."""
    type: str
    """What happened."""
    id: "Id"
    created: str
    """The log's own time: 100 ns since 1970, in decimal."""
    dataHash: str
    """SHA-256 of the data as it is stored, in hexadecimal."""
    metaHash: str
    """SHA-256 of the metadata as it is stored, in hexadecimal."""
    data: NotRequired[str]
    """The data as it is stored; absent where something in it is sealed or withheld."""
    texts: NotRequired[str]
    """The texts that the data have sealed: a salt, and then each text as JSON in the order of its marks, a
    line each. The SHA-256 of all of it is the data's textsSum, in base64url. Absent without such texts, and
    once they were erased. Additive."""
    meta: NotRequired[str]
    """The metadata as it is stored; absent where it says who tested, or which operator it was."""


class Proof(TypedDict):
    """That an event is one of a checkpoint's. Additive."""
    event: "ProofEvent"
    """What the event's leaf binds."""
    path: List[str]
    """The audit path, from the leaf up, in base64."""
    checkpoint: str
    """The signed note that the path leads to."""


class PassRatesGroups(TypedDict):
    week: NotRequired["Timestamp"]
    """With `by=week`: its Monday."""
    jobTypeCode: NotRequired[str]
    """With `by=jobType`."""
    projectId: NotRequired[str]
    """With `by=project`; empty for jobs of no project."""
    completedCount: int
    """Completed jobs."""
    passCount: int
    """Those that passed."""
    failCount: int
    """Those that failed."""
    passRate: float
    """passCount of completedCount."""


class PassRates(TypedDict):
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    by: List[Literal['week', 'jobType', 'project']]
    """What was asked for."""
    groups: List["PassRatesGroups"]
    """One for each that has a completed job."""


class PricingPrices(TypedDict):
    jobType: str
    """In Title Case."""
    jobTypeCode: "JobTypeCode"
    normal: int
    """Credits at normal priority."""
    urgent: int
    """Credits at urgent priority, twice the normal."""


class Pricing(TypedDict):
    prices: List["PricingPrices"]
    """One entry a type of job."""


class AccountEvent(TypedDict):
    """A webhook's envelope, with its place in the order."""
    cursor: NotRequired[str]
    """Opaque; give it as `after`."""
    id: NotRequired[str]
    """Of the event."""
    event: str
    """The kind of event."""
    type: str
    """The same as event."""
    timestamp: "Timestamp"
    projectId: NotRequired[Optional[str]]
    """The project; null without one."""
    jobId: NotRequired[Optional[str]]
    """Of events about a job."""
    dashboardReportUrl: NotRequired[str]
    """Of events about a job."""
    data: Dict[str, Any]
    """As in the webhook of this kind; see the schemas Webhook…"""


class EventPage(TypedDict):
    events: List["AccountEvent"]
    """In the order in which they happened."""
    next: Optional[str]
    """Give it as `after` to go on; null before the first event."""
    hasMore: bool
    """There are more events behind `next`."""
    passedOver: NotRequired[int]
    """Events of kinds that this process does not know, during an upgrade of the service; absent without any.
    `next` lies behind them."""


class JobEvents(TypedDict):
    jobId: "Id"
    events: List["AccountEvent"]
    """In the order in which they happened."""
    passedOver: NotRequired[int]
    """Events of kinds that this process does not know, during an upgrade of the service; absent without
    any."""


class FinalizeLoop(TypedDict):
    finalStatus: Literal['passed', 'stuck_same_bug', 'out_of_credits', 'max_iterations', 'abandoned']
    """How the loop ends."""


class LoopSession(TypedDict):
    id: "Id"
    projectId: "Id"
    skill: str
    """Of X-Agent-Skill."""
    status: Literal['running', 'passed', 'stuck_same_bug', 'out_of_credits', 'max_iterations', 'abandoned']
    """stuck_same_bug: the same failing keys three times in a row; abandoned: silent for 24 hours.
    stuck_same_bug, out_of_credits and max_iterations send loop_session.ended."""
    iterations: "Count"
    """Tests so far."""
    maxIterations: int
    """The cap."""
    creditsSpent: "Credits"
    finalReportId: Optional[str]
    """The report of the last completed test; null without one."""
    failingKeys: List[str]
    """Of the latest test."""
    jobIds: List[str]
    """In order."""
    startedAt: "Timestamp"
    lastSeenAt: "Timestamp"
    endedAt: "NullableTimestamp"


class QueueJobs(TypedDict):
    id: "Id"
    title: str
    """The title."""
    url: str
    """The URL under test."""
    jobType: str
    """The spelling that was submitted, or found."""
    jobTypeCode: NotRequired["JobTypeCode"]
    priority: "Priority"
    slaMinutes: "SlaMinutes"
    createdAt: "Timestamp"
    dueAt: "Timestamp"
    sessionId: Optional[str]
    """Of a session's slot."""
    readyDeadline: NotRequired[Optional[str]]
    """When the lobby closes that the slot waits in."""
    targetDevice: "NullableTarget"
    targetOS: NotRequired["NullableTarget"]
    targetBrowser: NotRequired["NullableTarget"]
    targetScreenSize: NotRequired["NullableTarget"]
    targetNetwork: NotRequired["NullableTarget"]


class Queue(TypedDict):
    total: int
    """All jobs that wait for the checker."""
    limit: int
    """The most entries that an answer holds."""
    offset: int
    """How many were passed over."""
    jobs: List["QueueJobs"]
    """Urgent jobs and open lobbies first, and of either kind what is due first."""


class NewClaim(TypedDict):
    jobId: NotRequired[Optional[str]]
    """Default: the next of the queue."""


class NewQuestion(TypedDict):
    text: str
    """The question."""
    itemId: NotRequired[Optional[str]]
    """The item that it is about; absent: the whole test."""
    kind: NotRequired[Optional[Literal['code', 'access', 'meaning', 'other']]]
    """What you need; `other` unless you say."""


class AskedQuestion(TypedDict):
    jobId: "Id"
    questionId: "Id"
    until: str
    """How long it waits."""


class ToldQuestion(TypedDict):
    """A question of this job, with the secret of its answer."""
    id: "Id"
    itemId: Optional[str]
    """The item that it is about; null: the whole test."""
    kind: Literal['code', 'access', 'meaning', 'other']
    """What was needed."""
    text: str
    """The question."""
    status: Literal['open', 'answered', 'unanswered', 'claim_ended']
    """Whether it was answered."""
    askedAt: "Timestamp"
    until: str
    """How long it waits."""
    answer: Optional[str]
    """The client's words, or null."""
    hasSecret: bool
    """A secret came with the answer."""
    answeredAt: "NullableTimestamp"
    secret: Optional[str]
    """For you alone; or null."""


class ClaimBriefCredentials(TypedDict):
    """What is needed to sign in, or null."""
    username: str
    """The name to sign in with."""
    password: str
    """The password."""
    notes: str
    """Anything else about signing in."""


class ClaimBrief(TypedDict):
    """What the client wants tested."""
    title: str
    """The title."""
    url: str
    """The URL under test."""
    description: str
    """What the client wants tested."""
    feature: Optional[str]
    """The focus of the test, or null."""
    credentials: Optional["ClaimBriefCredentials"]
    """What is needed to sign in, or null."""
    accessInstructions: Optional[str]
    """How to reach protected parts, or null."""
    scenarioBrief: NotRequired[str]
    """Of a session's slot."""
    roleLabel: NotRequired[str]
    """Of a session's slot."""


class Claim(TypedDict):
    jobId: "Id"
    claimToken: str
    """Fences every later call; send it as X-Claim-Token."""
    dueAt: "Timestamp"
    brief: "ClaimBrief"
    """What the client wants tested."""
    checklist: List["DraftItem"]
    """The items to check, with what was said of them so far."""
    findings: List["DraftItem"]
    """What was found outside the list so far."""
    questions: List["ToldQuestion"]
    """What was asked about this job, with the answers; the oldest first."""


class DraftItem(TypedDict):
    id: str
    """The item's id."""
    key: str
    """Stable across the project's tests."""
    description: str
    """What to check."""
    expectedOutcome: str
    """Empty if none was given."""
    severity: "Severity"
    note: str
    """What the checker says of it."""
    reason: Optional[str]
    """Of a skip."""
    screenshotUrl: Optional[str]
    """A fresh link to evidence."""
    screenshotUrls: NotRequired[List[str]]
    """All pictures of the item, `screenshotUrl` first. Absent unless there are several."""
    origin: NotRequired[Literal['open_failure', 'prepared_fix']]
    """Of an item that failed in an earlier test. The question is then: is it fixed? So `pass` means that it
    works now."""
    status: Literal['pending', 'pass', 'fail', 'skip']
    """The verdict; `pending` while there is none."""


class CheckedItem(TypedDict):
    id: str
    """The item's id."""
    key: str
    """Stable across the project's tests."""
    description: str
    """What to check."""
    expectedOutcome: str
    """Empty if none was given."""
    severity: "Severity"
    note: str
    """What the checker says of it."""
    reason: Optional[str]
    """Of a skip."""
    screenshotUrl: Optional[str]
    """A fresh link to evidence."""
    screenshotUrls: NotRequired[List[str]]
    """All pictures of the item, `screenshotUrl` first. Absent unless there are several."""
    origin: NotRequired[Literal['open_failure', 'prepared_fix']]
    """Of an item that failed in an earlier test. The question is then: is it fixed? So `pass` means that it
    works now."""
    status: Literal['pending', 'pass', 'fail', 'skip']
    """The verdict."""


class Verdict(TypedDict):
    status: Literal['pending', 'pass', 'fail', 'skip']
    """The verdict. `pending` takes one back, and keeps a note without one."""
    note: NotRequired[Optional[str]]
    """What the checker says of it."""
    severity: NotRequired[Optional[str]]
    """Default: the item's."""
    reason: NotRequired["SkipReason"]
    screenshotUrl: NotRequired[Optional[str]]
    """The `url` of evidence that was uploaded, or another link."""
    screenshotUrls: NotRequired[List[str]]
    """Several of them, in the place of `screenshotUrl`."""


class NewFinding(TypedDict):
    key: NotRequired[Optional[str]]
    """The key of the failure that it is the same as: their lineage is one. Derived from the description if
    absent."""
    description: str
    """What was found."""
    status: Literal['pass', 'fail']
    """The verdict."""
    note: NotRequired[Optional[str]]
    """What the checker says of it."""
    severity: NotRequired["SeverityInput"]


class WithdrawnFinding(TypedDict):
    jobId: "Id"
    findingId: "Id"


class Completion(TypedDict):
    summary: NotRequired[Optional[str]]
    """The outcome in a few sentences. `checkerSummary`, the report's name of it, is taken, too. Without
    either, a body with other words in it is 400: they would be lost."""
    recordingUrl: NotRequired[Optional[str]]
    """A recording of the whole test: the `url` of evidence that was uploaded, or another link. Without it the
    first recording that was sent while testing."""


class CompletedJob(TypedDict):
    jobId: "Id"
    status: Literal['completed']
    """Always this."""
    reportId: "Id"
    overallStatus: "OverallStatus"
    passCount: "Count"
    """Items that passed."""
    failCount: "Count"
    """Items that failed."""
    skipCount: "Count"
    """Items that were skipped."""


class JobStanding(TypedDict):
    jobId: "Id"
    status: "JobStatus"


class Untestable(TypedDict):
    reason: str
    """Why, in a few words."""
    note: NotRequired[Optional[str]]
    """What the checker says of it."""


class Heartbeat(TypedDict):
    jobId: "Id"
    status: NotRequired["JobStatus"]
    dueAt: "Timestamp"
    clockStands: bool
    """A question is open: `dueAt` will be later."""
    silentAt: NotRequired[str]
    """When the claim ends, unless a call arrives before."""


class SessionRoomMarks(TypedDict):
    at: "Timestamp"
    slot: Optional[int]
    """Whose checker did; null: the client."""
    note: str
    """What it is, perhaps empty."""


class SessionRoom(TypedDict):
    sessionId: "Id"
    status: "SessionStatus"
    url: str
    """The URL under test."""
    feature: Optional[str]
    """The focus of the test, or null."""
    scenarioBrief: Optional[str]
    """What is to be played; null without one."""
    voiceEnabled: bool
    """Voice chat in the session room."""
    slot: int
    """Number of your slot, from 1."""
    jobId: "Id"
    readyCount: "Count"
    """Slots that are ready."""
    checkerCount: int
    """Number of slots."""
    readyDeadline: "Timestamp"
    startsWith: Optional[int]
    """How many it starts with at the deadline as the lobby stands; null: it would not start, or is no
    lobby."""
    startedAt: "NullableTimestamp"
    closedAt: "NullableTimestamp"
    slots: List["RoomSlot"]
    """In submitted order."""
    marks: List["SessionRoomMarks"]
    """Moments that somebody pointed out to all, the oldest first."""
    roomUrl: str
    """The room's page, for people."""


class RoomSlot(TypedDict):
    slot: int
    """Number of the slot, from 1."""
    roleLabel: str
    """What the checker plays."""
    targetDevice: "NullableTarget"
    targetOS: "NullableTarget"
    targetBrowser: "NullableTarget"
    targetScreenSize: "NullableTarget"
    targetNetwork: "NullableTarget"
    status: Literal['waiting', 'ready', 'active', 'dropped', 'ended']
    """`waiting` for a checker to be ready, `ready`, `active` while testing, `dropped` when the session began
    without it, or `ended`."""
    readyAt: "NullableTimestamp"
    checklist: "ChecklistProgress"
    """How far it is."""


class KnownFailuresOpenFailures(TypedDict):
    key: str
    """The item's key in the project."""
    description: str
    """What the item says."""
    severity: "Severity"
    failedTests: int
    """In how many tests since it first failed."""
    firstFailedAt: "Timestamp"


class KnownFailures(TypedDict):
    jobId: "Id"
    openFailures: List["KnownFailuresOpenFailures"]
    """At most `limit`."""


class SessionStanding(TypedDict):
    sessionId: "Id"
    status: "SessionStatus"
    slot: int
    """Number of the slot, from 1."""
    jobId: "Id"
    readyCount: "Count"
    """Slots that are ready."""
    checkerCount: int
    """Number of slots."""
    readyDeadline: "Timestamp"


class Delivery(TypedDict):
    id: str
    """As in X-Service-Delivery."""
    event: str
    """The kind of event."""
    jobId: Optional[str]
    """What it is about; null for what is about no job."""
    status: Literal['pending', 'delivered', 'failed', 'held', 'dropped']
    """`held` waits for a replay, because the webhook was disabled; `failed` was given up after the last
    retry."""
    attempts: int
    """Requests so far."""
    createdAt: "Timestamp"
    nextAttemptAt: Optional[str]
    """When it is sent next; null while a request is under way, and when nothing waits."""
    lastStatusCode: Optional[int]
    """Of the latest attempt; null without an answer."""
    lastError: Optional[str]
    """Why the latest attempt failed, or null."""


class DeliveryList(TypedDict):
    deliveries: List["Delivery"]
    """Newest first."""
    nextCursor: Optional[str]
    """Ask with it as `cursor` for what follows; null at the end."""


class WholeDeliveryAttempts(TypedDict):
    at: "Timestamp"
    durationMs: int
    """How long it took."""
    url: str
    """Where it went."""
    statusCode: Optional[int]
    """Null without an answer."""
    error: Optional[str]
    """Why it failed; null for a success."""
    responseBody: str
    """The first 1,024 bytes of the answer."""
    headers: Dict[str, str]
    """What it was sent with, but what HTTP itself adds."""


class WholeDelivery(TypedDict):
    id: str
    """As in X-Service-Delivery."""
    event: str
    """The kind of event."""
    jobId: Optional[str]
    """What it is about; null for what is about no job."""
    status: Literal['pending', 'delivered', 'failed', 'held', 'dropped']
    """As in the list."""
    createdAt: "Timestamp"
    nextAttemptAt: Optional[str]
    """When it is sent next; null while a request is under way, and when nothing waits."""
    lastStatusCode: Optional[int]
    """Of the latest attempt; null without an answer."""
    lastError: Optional[str]
    """Why the latest attempt failed, or null."""
    projectId: "Id"
    body: str
    """The exact bytes that every attempt sends."""
    headers: Dict[str, str]
    """Those of the latest attempt; before the first one, without signatures."""
    attempts: List["WholeDeliveryAttempts"]
    """Every request, the first one first."""


class ChosenDeliveries(TypedDict):
    since: NotRequired[Optional[str]]
    """ISO 8601: held and failed deliveries that were created after it. Not beside deliveryIds."""
    deliveryIds: NotRequired[Optional[List[str]]]
    """These, as far as they are held or failed. Not beside since."""


class ChangedDeliveries(TypedDict):
    count: int
    """How many were changed."""


class SecretRotation(TypedDict):
    immediate: NotRequired[Optional[bool]]
    """The old secret leaked: it ends at once. Absent: false."""
    finish: NotRequired[Optional[bool]]
    """Absent: false. The receiver knows the new secret: the overlap ends. Makes no new one; without an
    overlap nothing changes."""


class RotatedSecret(TypedDict):
    webhookSecret: Optional[str]
    """The new secret; null when the rotation was finished."""
    previousValidUntil: Optional[str]
    """Until when the old secret signs, too; null: it does not."""
    next: str
    """What to do now, in a sentence or three for people."""
    webhookSecretRotatedAt: Optional[str]
    """The latest rotation; null before the first."""


class WebhookHealth(TypedDict):
    """How the webhook does; null without one."""
    status: Literal['ok', 'failing', 'disabled']
    """`failing`: the latest attempts failed, and the webhook is disabled if a delivery's last retry does."""
    failingSince: Optional[str]
    """The first failure since the last success, or null."""
    consecutiveFailures: int
    """Attempts since the last success."""
    lastError: Optional[str]
    """Of the latest of them, or null."""
    lastSuccessAt: Optional[str]
    """To the second; null before the first."""
    held: int
    """Deliveries that wait for a replay or a drop."""
    failed: int
    """Deliveries that were given up after the last retry."""


class WebhookTestData(TypedDict):
    """Says that it is a test."""
    projectId: str
    """The project."""
    message: str
    """For people."""


class WebhookTest(TypedDict):
    """Sent only where somebody asked for it."""
    event: Literal['webhook.test']
    """The event."""
    type: Literal['webhook.test']
    """The same as event."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    data: "WebhookTestData"
    """Says that it is a test."""


class ErrorProblems(TypedDict):
    part: str
    """Which part."""
    reason: str
    """What is wrong with it."""


class Error(TypedDict):
    """The one shape of every error. Further keys belong to single codes."""
    error: str
    """For people; the wording may change."""
    code: Literal['INVALID_REQUEST', 'UNAUTHORIZED', 'INSUFFICIENT_CREDITS', 'FORBIDDEN', 'ACCOUNT_SUSPENDED', 'NOT_FOUND', 'METHOD_NOT_ALLOWED', 'CONFLICT', 'GONE', 'WEBHOOK_SECRET_CONFLICT', 'PAYLOAD_TOO_LARGE', 'RATE_LIMITED', 'INTERNAL_ERROR', 'UNAVAILABLE', 'CURSOR_AHEAD', 'CURSOR_GONE', 'ANOTHER_LOG']
    """For programs; stable."""
    hint: NotRequired[str]
    """The next step; safe to show to end users."""
    requestId: str
    """Equals the header x-request-id."""
    details: NotRequired[List["ErrorDetail"]]
    """Of a 400: every offending path."""
    creditsRequired: NotRequired[int]
    """Of a 402: the price of the request."""
    creditsAvailable: NotRequired[int]
    """Of a 402: what the account has."""
    creditsShort: NotRequired[int]
    """Of a 402: required minus available."""
    goneAt: NotRequired[str]
    """Of the 410 to a piece of evidence: when it went, by the account's clock. Additive."""
    reason: NotRequired[str]
    """Of the 410 to a piece of evidence: the setting that it went by. Additive."""
    size: NotRequired[int]
    """Of the 410 to a piece of evidence: its size in bytes. Additive."""
    uploadOffset: NotRequired[int]
    """Of the 409 to a part of a recording: how many bytes are there. Additive."""
    log: NotRequired[str]
    """Of a refused cursor: the log of today and its generation, as in `X-Service-Log`. Additive."""
    next: NotRequired[Optional[str]]
    """Of a refused cursor: where to continue, as `after`; null: at the beginning, without `after`.
    Additive."""
    uncheckedItems: NotRequired[List[str]]
    """Of the checkers' 409 on completion: the items without a verdict. Additive."""
    openQuestionId: NotRequired[str]
    """Of the checkers' 409 on a question: the one that is open. Additive."""
    claimedJobs: NotRequired[List[str]]
    """Of the checkers' 409 on a claim: the jobs that are claimed already. Additive."""
    problems: NotRequired[List["ErrorProblems"]]
    """Of /readyz's 503: every reason. Additive."""


class ErrorDetail(TypedDict):
    path: str
    """Where, as in `checklistItems[2].description`; `body` for the body as a whole; a header's or a query
    parameter's name."""
    message: str
    """What is wrong there."""


class KeepEvidence(TypedDict):
    """Additive."""
    keepEvidenceDays: NotRequired[Optional[int]]
    """Days after a job's end that its evidence is kept; null: for good."""
    keepRecordingsDays: NotRequired[Optional[int]]
    """The same for recordings; null: as other evidence."""


class KeptEvidenceHold(TypedDict):
    """The hold on the whole account; null: none."""
    reason: str
    """Why it was placed."""
    operator: bool
    """An operator of the service placed it, and releases it."""
    placedAt: "Timestamp"


class KeptEvidence(TypedDict):
    """Additive."""
    keepEvidenceDays: Optional[int]
    """Of the account; null: for good."""
    keepRecordingsDays: Optional[int]
    """Of the account; null: as other evidence."""
    hold: Optional["KeptEvidenceHold"]
    """The hold on the whole account; null: none."""
    usage: "EvidenceUsage"
    """What there is."""
    estimate: NotRequired["EvidenceUsage"]
    """With the settings of the query; absent without them. It does not count what has gone."""


class EvidenceUsage(TypedDict):
    """Additive."""
    evidence: "EvidenceKind"
    """Pictures and short videos."""
    recordings: "EvidenceKind"
    """Recordings of whole tests."""
    noLongerKept: "EvidenceSize"
    """What went by the settings so far."""
    due: "EvidenceSize"
    """What goes within minutes."""
    nextMonth: "EvidenceSize"
    """What goes within 30 days, `due` included."""


class EvidenceKind(TypedDict):
    """Additive."""
    files: int
    """Files that are kept."""
    bytes: int
    """Their size."""
    held: "EvidenceSize"
    """What a hold keeps."""
    due: "EvidenceSize"
    """What goes within minutes."""
    nextMonth: "EvidenceSize"
    """What goes within 30 days."""


class EvidenceSize(TypedDict):
    """Additive."""
    files: int
    """Files."""
    bytes: int
    """Their size."""


class NoLongerKept(TypedDict):
    """A piece of evidence that went by a setting. Its link answers 410. Additive."""
    id: "Id"
    name: str
    """The name of the file."""
    contentType: str
    """What it was."""
    size: int
    """Bytes."""
    recording: bool
    """A recording of the test."""
    goneAt: "Timestamp"
    reason: str
    """The setting that it went by."""


class Evidence(TypedDict):
    """A stored file. Additive."""
    url: str
    """A signed link, for 15 minutes."""
    contentType: Literal['image/png', 'image/jpeg', 'image/webp', 'image/gif', 'video/mp4', 'video/webm']
    """What the file is, by its content."""
    size: int
    """Bytes."""


class IgnoredDeploy(TypedDict):
    """Additive."""
    ignored: Literal[True]
    """Always true."""
    reason: str
    """Why nothing is tested."""


class NewHostedTest(TypedDict):
    url: "PublicUrl"
    feature: NotRequired[Optional[str]]
    """Focus of the test; the checklist is tailored to it."""
    webhookUrl: NotRequired["WebhookUrl"]
    webhookSecret: NotRequired["WebhookSecret"]
    subscribedWebhookEvents: NotRequired["EventNames"]
    priority: NotRequired["PriorityInput"]
    jobType: NotRequired["HostedJobType"]
    accessInstructions: NotRequired["AccessInstructions"]
    """How to reach protected parts; may hold a login. Encrypted at rest, shown to the current claimant only.
    No answer of this API but a checker's claim returns it. Additive."""
    targetDevice: NotRequired["TargetField"]
    """Free text, trimmed; no closed list. Additive."""
    targetOS: NotRequired["TargetField"]
    """Free text, trimmed; no closed list. Additive."""
    targetBrowser: NotRequired["TargetField"]
    """Free text, trimmed; no closed list. Additive."""
    targetScreenSize: NotRequired["TargetField"]
    """Free text, trimmed; no closed list. Additive."""
    targetNetwork: NotRequired["TargetField"]
    """Free text, trimmed; no closed list. Additive."""
    commitStatus: NotRequired["NewCommitStatus"]
    """Tells the verdict at a commit, so that it can be a required check: `pending` at once, then `success`,
    `failure`, or `error` where no verdict comes. The service sets it itself when every job of the request has
    ended. The token comes in the header `X-Commit-Token`. Additive."""
    checklistItems: NotRequired[Optional[List["NewChecklistItem"]]]
    """Your own items, behind those that failed before. Absent or empty: written for you. Not for an AI
    Review. Additive."""


class HostedJob(TypedDict):
    jobId: "Id"
    projectId: "Id"
    status: "JobStatus"
    estimatedCompletionMinutes: int
    """From the queue: the SLA for normal, half of it for urgent, at least 5."""
    creditsDeducted: "Credits"
    creditsCharged: int
    """Always equal to creditsDeducted."""
    creditsRemaining: "Credits"
    checklistItemCount: "Count"
    """Items of the checklist; 0 while it is being written."""
    jobType: str
    """As submitted; detected ones in Title Case."""
    jobTypeCode: "JobTypeCode"
    isHostedApp: bool
    """The host is a hosted platform's."""
    regressionItemsIncluded: "Count"
    """Items that come from earlier failures and prepared fixes."""
    statusUrl: str
    """Of GET /v1/hosted/status."""
    reportUrl: str
    """Of the JSON report."""
    dashboardReportUrl: str
    """A page for people."""
    loopSessionId: NotRequired[str]
    """Of a test with X-Agent-Skill: the loop session that counts it, for GET /v1/loop-sessions. Additive."""
    deduplicated: NotRequired[bool]
    """Of a deploy hook: the job was there before. Additive."""
    warnings: NotRequired["Warnings"]


class HostedStatusItems(TypedDict):
    id: str
    """The item's id."""
    description: str
    """What is checked."""
    severity: "Severity"
    """How bad a failure is."""
    status: Literal['pending', 'pass', 'fail', 'skip']
    """`pending` until it is checked."""
    note: str
    """What the checker says of it."""


class HostedStatus(TypedDict):
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    jobId: "Id"
    status: Literal['pending', 'in_progress', 'completed', 'failed', 'cancelled']
    """The job's status; `in_progress` stands for claimed."""
    statusMessage: str
    """For people."""
    progressPercent: int
    """Checked items of all; at most 99 until completed, 0 without a checklist."""
    url: str
    """The URL under test."""
    jobType: str
    """The spelling that was submitted, or found."""
    jobTypeCode: "JobTypeCode"
    checklist: "ChecklistProgress"
    """How far the checklist is."""
    result: NotRequired["HostedResult"]
    items: NotRequired[List["HostedStatusItems"]]
    """With `?items=true`: the checklist, in its order, as far as it is checked. Additive."""
    openQuestion: NotRequired["Question"]
    """With `?items=true`: the checker's question that waits for your answer; absent without one. Additive."""
    isFinal: bool
    """The job has ended. Additive."""
    projectId: Optional[str]
    """The job's project, or null. Additive."""
    aiReportStatus: Optional[Literal['generating', 'completed']]
    """Of the AI report; null until the job is completed. Additive."""


class HostedResultItems(TypedDict):
    id: str
    """The item's id."""
    description: str
    """What was checked."""
    status: "ItemStatus"
    """The verdict."""
    note: str
    """What the checker says of it."""


class HostedResult(TypedDict):
    """Once completed."""
    overallStatus: "OverallStatus"
    passCount: "Count"
    """Items that passed."""
    failCount: "Count"
    """Items that failed."""
    skipCount: "Count"
    """Items that were skipped."""
    summary: str
    """The outcome in a few sentences."""
    items: List["HostedResultItems"]
    """In the order of the checklist."""


class PrepareNext(TypedDict):
    """At least one of the two lists must have an entry."""
    projectId: "Id"
    fixedBugIds: NotRequired[List[str]]
    """Ids of failed items of the last test."""
    fixedDescriptions: NotRequired[List[str]]
    """Fixes in plain words."""


class PreparedNext(TypedDict):
    message: str
    """For people."""
    regressionItems: "Count"
    """How many fixes were queued by this call."""
    descriptions: List[str]
    """What will be verified."""
    projectId: "Id"


class Deploy(TypedDict):
    """All optional; the body may be empty."""
    url: NotRequired[Optional[str]]
    """What was deployed; default: the project's defaultUrl."""
    feature: NotRequired[Optional[str]]
    """Focus of the test."""
    commitSha: NotRequired[Optional[str]]
    """With a live job: deduplicates."""
    branch: NotRequired[Optional[str]]
    """Told to the checker."""
    environment: NotRequired[Optional[str]]
    """Told to the checker."""
    priority: NotRequired["PriorityInput"]
    deduplicationKey: NotRequired[Optional[str]]
    """As commitSha: either one that was seen before deduplicates."""


class NewSessionSlots(TypedDict):
    roleLabel: NotRequired[Optional[str]]
    """Default: `Checker N`."""
    targetDevice: NotRequired["TargetField"]
    targetOS: NotRequired["TargetField"]
    targetBrowser: NotRequired["TargetField"]
    targetScreenSize: NotRequired["TargetField"]
    targetNetwork: NotRequired["TargetField"]


class NewSession(TypedDict):
    url: "PublicUrl"
    slots: List["NewSessionSlots"]
    """One entry a checker, 2 to 10."""
    scenarioBrief: NotRequired[Optional[str]]
    """Shown to every checker in the lobby."""
    feature: NotRequired[Optional[str]]
    """Focus of the test."""
    jobType: NotRequired["HostedJobType"]
    priority: NotRequired["PriorityInput"]
    webhookUrl: NotRequired["WebhookUrl"]
    webhookSecret: NotRequired["WebhookSecret"]
    """32 to 256 printable ASCII characters. Without a secret in the project, and with `webhookUrl`, this
    exact value signs callbacks. The same value again changes nothing. A different one is 409
    WEBHOOK_SECRET_CONFLICT without any side effect. Omitted, a secret is generated when a URL is first
    attached. No answer ever returns it. Additive."""
    subscribedWebhookEvents: NotRequired["EventNames"]
    accessInstructions: NotRequired["AccessInstructions"]
    voiceEnabled: NotRequired[Optional[bool]]
    """Voice chat in the session room. Absent: true."""


class CreatedSessionSlots(TypedDict):
    slot: int
    """Number of the slot, from 1."""
    roleLabel: str
    """What the checker plays."""
    jobId: "Id"
    targetDevice: Optional[str]
    """As submitted, or null."""
    statusUrl: str
    """Of GET /v1/hosted/status."""


class CreatedSession(TypedDict):
    sessionId: "Id"
    projectId: "Id"
    status: "SessionStatus"
    checkerCount: int
    """Number of slots."""
    creditsDeducted: "Credits"
    creditsCharged: int
    """Always equal to creditsDeducted."""
    creditsRemaining: "Credits"
    checklistItemCount: int
    """Of each slot."""
    jobType: str
    """The spelling that was submitted, or found."""
    jobTypeCode: "JobTypeCode"
    isHostedApp: bool
    """The host is a hosted platform's."""
    readyDeadline: "Timestamp"
    slots: List["CreatedSessionSlots"]
    """In submitted order."""
    sessionUrl: str
    """A dashboard page."""
    warnings: NotRequired["Warnings"]


class SessionSummary(TypedDict):
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    sessionId: "Id"
    projectId: "Id"
    status: "SessionStatus"
    checkerCount: int
    """Number of slots."""
    readyCount: "Count"
    """Slots that are ready."""
    url: str
    """The URL under test."""
    feature: NotRequired[Optional[str]]
    """The focus of the test, or null."""
    scenarioBrief: NotRequired[Optional[str]]
    """Shown to every checker in the lobby; null without one."""
    voiceEnabled: NotRequired[bool]
    """Voice chat in the session room."""
    jobType: NotRequired[str]
    """The spelling that was submitted, or found."""
    jobTypeCode: NotRequired["JobTypeCode"]
    checklistItemCount: NotRequired["Count"]
    """Items of the checklist; 0 while it is being written."""
    creditsCharged: NotRequired["Credits"]
    creditsRefunded: NotRequired["Credits"]
    creditsExpired: NotRequired["CreditsExpired"]
    readyDeadline: "Timestamp"
    createdAt: "Timestamp"
    startedAt: NotRequired["NullableTimestamp"]
    closedAt: NotRequired["NullableTimestamp"]
    closeReason: NotRequired[Optional[Literal['completed', 'expired', 'client', 'operator']]]
    """Null while it is open."""
    passCount: NotRequired[int]
    """Jobs that passed."""
    failCount: NotRequired[int]
    """Jobs that failed."""
    sessionUrl: NotRequired[str]
    """A dashboard page."""
    slots: NotRequired[List["SessionSlot"]]
    """In submitted order."""


class SessionPage(TypedDict):
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    sessions: List["SessionSummary"]
    """Newest first."""
    total: "Count"
    """On all pages."""
    limit: int
    """As asked."""
    offset: int
    """As asked."""


class Session(TypedDict):
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    sessionId: "Id"
    projectId: "Id"
    status: "SessionStatus"
    checkerCount: int
    """Number of slots."""
    readyCount: "Count"
    """Slots that are ready."""
    url: str
    """The URL under test."""
    feature: Optional[str]
    """The focus of the test, or null."""
    scenarioBrief: Optional[str]
    """Shown to every checker in the lobby; null without one."""
    voiceEnabled: bool
    """Voice chat in the session room."""
    jobType: str
    """The spelling that was submitted, or found."""
    jobTypeCode: "JobTypeCode"
    checklistItemCount: "Count"
    """Items of the checklist; 0 while it is being written."""
    creditsCharged: "Credits"
    creditsRefunded: "Credits"
    creditsExpired: "CreditsExpired"
    readyDeadline: "Timestamp"
    createdAt: "Timestamp"
    startedAt: "NullableTimestamp"
    closedAt: "NullableTimestamp"
    closeReason: Optional[Literal['completed', 'expired', 'client', 'operator']]
    """Null while it is open."""
    passCount: int
    """Jobs that passed."""
    failCount: int
    """Jobs that failed."""
    sessionUrl: str
    """A dashboard page."""
    slots: List["SessionSlot"]
    """In submitted order."""


class SessionSlot(TypedDict):
    slot: int
    """Number of the slot, from 1."""
    roleLabel: str
    """What the checker plays."""
    jobId: "Id"
    targetDevice: Optional[str]
    """As submitted, or null."""
    targetOS: NotRequired["NullableTarget"]
    targetBrowser: NotRequired["NullableTarget"]
    targetScreenSize: NotRequired["NullableTarget"]
    targetNetwork: NotRequired["NullableTarget"]
    statusUrl: str
    """Of GET /v1/hosted/status."""
    status: Literal['waiting', 'ready', 'active', 'dropped', 'ended']
    """`waiting` for a checker to be ready, `ready`, `active` while testing, `dropped` when the session began
    without it, or `ended`."""
    readyAt: "NullableTimestamp"
    jobStatus: "JobStatus"
    reportId: NotRequired[Optional[str]]
    """Absent or null until a report exists."""


class CancelledSession(TypedDict):
    sessionId: "Id"
    status: Literal['cancelled']
    """Always this."""
    creditsRefunded: "Credits"
    creditsExpired: "CreditsExpired"
    creditsRemaining: "Credits"


class NewJob(TypedDict):
    url: "PublicUrl"
    title: str
    """What the job is called."""
    description: str
    """What the checker should test."""
    jobType: "JobType"
    checklistItems: NotRequired[Optional[List["NewChecklistItem"]]]
    """Your own items. Absent or empty: written for you."""
    priority: NotRequired["PriorityInput"]
    projectId: NotRequired[Optional[str]]
    """Default: a project-bound key's project, else none. Another account's: 404."""
    slaMinutes: NotRequired[Optional[int]]
    """15, 30 or 60. Default: the project's, then 60."""
    credentials: NotRequired["Credentials"]
    generateChecklist: NotRequired[Optional[Literal['sync', 'async']]]
    """`sync` waits for the checklist, and falls back to one by rules if the model is down. Absent:
    `async`."""
    accessInstructions: NotRequired["AccessInstructions"]
    """How to reach protected parts; may hold a login. Encrypted at rest, shown to the current claimant only.
    No answer of this API but a checker's claim returns it. Additive."""
    targetDevice: NotRequired["TargetField"]
    """Free text, trimmed; no closed list. Additive."""
    targetOS: NotRequired["TargetField"]
    """Free text, trimmed; no closed list. Additive."""
    targetBrowser: NotRequired["TargetField"]
    """Free text, trimmed; no closed list. Additive."""
    targetScreenSize: NotRequired["TargetField"]
    """Free text, trimmed; no closed list. Additive."""
    targetNetwork: NotRequired["TargetField"]
    """Free text, trimmed; no closed list. Additive."""
    commitStatus: NotRequired["NewCommitStatus"]
    """Tells the verdict at a commit, so that it can be a required check: `pending` at once, then `success`,
    `failure`, or `error` where no verdict comes. The service sets it itself when every job of the request has
    ended. The token comes in the header `X-Commit-Token`. Additive."""


class NewCommitStatus(TypedDict):
    """Tells the verdict at a commit, so that it can be a required check: `pending` at once, then `success`,
    `failure`, or `error` where no verdict comes. The service sets it itself when every job of the request has
    ended. The token comes in the header `X-Commit-Token`."""
    provider: NotRequired[Optional[Literal['github', 'gitlab']]]
    """Absent: `github`."""
    repository: str
    """owner/name, as in the repository's URL."""
    commit: str
    """The whole hash. Of a pull request it is that of its head."""
    context: NotRequired[Optional[str]]
    """The name of the status. Absent: `Human QA`."""
    ref: NotRequired[Optional[str]]
    """The branch or the pull request. A newer submission with the same repository, context and ref cancels
    and refunds the tests of this one that no checker has begun, once the code host has taken its first
    status. Under a key of one project it does so in that project only. Absent: none does."""
    failOn: NotRequired[Optional[Literal['critical', 'major', 'minor', 'never']]]
    """The least severity of a failure that counts. Absent: `minor`."""


class CommitStatus(TypedDict):
    """Where the verdict is told at a commit; null where none was asked for. Additive."""
    provider: Literal['github', 'gitlab']
    """The code host."""
    repository: str
    """owner/name."""
    commit: str
    """The whole hash."""
    context: str
    """The name of the status."""
    ref: Optional[str]
    """The branch or the pull request, or null."""
    failOn: Literal['critical', 'major', 'minor', 'never']
    """The least severity of a failure that counts."""
    state: Optional[Literal['pending', 'success', 'failure', 'error']]
    """What the code host has; null before the first word."""
    error: Optional[str]
    """The reason that the code host gets no further word, or null."""


class SubmittedJob(TypedDict):
    jobId: "Id"
    status: "JobStatus"
    estimatedCompletionMinutes: int
    """From the queue: the SLA for normal, half of it for urgent."""
    creditsDeducted: "Credits"
    checklistItemCount: "Count"
    """Items of the checklist; 0 while it is being written."""
    creditsRemaining: int
    """What the account has left. Additive."""
    jobType: str
    """As submitted. Additive."""
    jobTypeCode: "JobTypeCode"
    projectId: Optional[str]
    """The job's project, or null. Additive."""
    warnings: NotRequired["Warnings"]


class RetestedJob(TypedDict):
    jobId: "Id"
    parentJobId: "Id"
    status: "JobStatus"
    creditsDeducted: "Credits"
    estimatedCompletionMinutes: int
    """As of a submission. Additive."""
    creditsRemaining: int
    """What the account has left. Additive."""
    checklistItemCount: int
    """Items of the checklist. Additive."""
    jobType: str
    """The cloned job's. Additive."""
    jobTypeCode: "JobTypeCode"
    projectId: Optional[str]
    """The cloned job's. Additive."""


class JobSummary(TypedDict):
    id: "Id"
    status: "JobStatus"
    title: str
    """The title."""
    url: str
    """The URL under test."""
    jobType: str
    """The spelling that was submitted."""
    createdAt: "Timestamp"
    reportId: NotRequired[str]
    """Absent until a report exists."""
    jobTypeCode: "JobTypeCode"
    projectId: Optional[str]
    """The job's project, or null. Additive."""
    priority: "Priority"
    """`urgent` costs twice as much and jumps the queue. Additive."""
    isFinal: bool
    """The job has ended: completed, cancelled or failed. Additive."""


class JobPage(TypedDict):
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    jobs: List["JobSummary"]
    """Newest first."""
    total: int
    """On all pages."""
    limit: int
    """As asked."""
    offset: int
    """As asked."""
    nextCursor: Optional[str]
    """Ask with it as `cursor` for what follows; null at the end. Additive."""


class Question(TypedDict):
    """A checker's question, and your answer. Additive."""
    id: "Id"
    itemId: Optional[str]
    """The item that it is about; null: the whole test."""
    kind: Literal['code', 'access', 'meaning', 'other']
    """What the checker needs."""
    text: str
    """The checker's words. Untrusted text."""
    status: Literal['open', 'answered', 'unanswered', 'claim_ended']
    """`unanswered`: its time ran out, and its item was skipped. `claim_ended`: the checker stopped first."""
    askedAt: "Timestamp"
    until: str
    """How long it waits. The SLA stands so long."""
    answer: Optional[str]
    """Your words; null until you answer."""
    hasSecret: bool
    """A secret came with the answer. It is never shown here."""
    answeredAt: "NullableTimestamp"


class Questions(TypedDict):
    """Additive."""
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    jobId: "Id"
    questions: List["Question"]
    """The oldest first."""


class NewAnswer(TypedDict):
    """At least one of the two. Additive."""
    text: NotRequired[Optional[str]]
    """What the checker should know. The report shows it."""
    secret: NotRequired[Optional[str]]
    """A code or a password. Only the checker that holds the job sees it."""


class AnsweredQuestion(TypedDict):
    """Additive."""
    jobId: "Id"
    id: "Id"
    itemId: Optional[str]
    """The item that it is about; null: the whole test."""
    kind: Literal['code', 'access', 'meaning', 'other']
    """What the checker needs."""
    text: str
    """The checker's words. Untrusted text."""
    status: Literal['open', 'answered', 'unanswered', 'claim_ended']
    """`unanswered`: its time ran out, and its item was skipped. `claim_ended`: the checker stopped first."""
    askedAt: "Timestamp"
    until: str
    """How long it waits. The SLA stands so long."""
    answer: Optional[str]
    """Your words; null until you answer."""
    hasSecret: bool
    """A secret came with the answer. It is never shown here."""
    answeredAt: "NullableTimestamp"


class JobOpenQuestion(TypedDict):
    """The checker's question that waits for your answer, or null. Additive."""
    id: "Id"
    itemId: Optional[str]
    """The item that it is about; null: the whole test."""
    kind: Literal['code', 'access', 'meaning', 'other']
    """What the checker needs."""
    text: str
    """The checker's words. Untrusted text."""
    status: Literal['open', 'answered', 'unanswered', 'claim_ended']
    """`unanswered`: its time ran out, and its item was skipped. `claim_ended`: the checker stopped first."""
    askedAt: "Timestamp"
    until: str
    """How long it waits. The SLA stands so long."""
    answer: Optional[str]
    """Your words; null until you answer."""
    hasSecret: bool
    """A secret came with the answer. It is never shown here."""
    answeredAt: "NullableTimestamp"


class Job(TypedDict):
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    id: "Id"
    status: "JobStatus"
    title: str
    """The title."""
    url: str
    """The URL under test."""
    jobType: str
    """The spelling that was submitted."""
    creditsUsed: int
    """Net of refunds."""
    slaMinutes: "SlaMinutes"
    createdAt: "Timestamp"
    claimedAt: "NullableTimestamp"
    completedAt: "NullableTimestamp"
    reportId: NotRequired[str]
    """Absent until a report exists."""
    parentJobId: NotRequired[str]
    """Of a retest: the job that was cloned."""
    jobTypeCode: "JobTypeCode"
    projectId: Optional[str]
    """The job's project, or null. Additive."""
    priority: "Priority"
    """`urgent` costs twice as much and jumps the queue. Additive."""
    isFinal: bool
    """The job has ended. Additive."""
    description: str
    """As submitted. Additive."""
    dueAt: str
    """When the SLA ends. Additive."""
    cancelledAt: Optional[str]
    """Null unless cancelled. Additive."""
    feature: Optional[str]
    """Of a hosted test. Additive."""
    source: Literal['api', 'hosted', 'session', 'retest', 'bulk', 'deploy', 'loop']
    """How it was submitted. Additive."""
    batchId: Optional[str]
    """Of a bulk job. Additive."""
    sessionId: Optional[str]
    """Of a session's slot. Additive."""
    cancelReason: Optional[Literal['client', 'session_expired', 'session_cancelled', 'operator', 'superseded']]
    """Null unless cancelled. Additive."""
    failedAt: Optional[str]
    """Null unless failed. Additive."""
    failReason: Optional[Literal['sla', 'untestable', 'operator']]
    """Null unless failed. Additive."""
    failNote: Optional[str]
    """The reasons and notes of checkers that could not test the job, a line each. Null unless failed, and
    without such a report. Additive."""
    overallStatus: Optional[Literal['pass', 'fail', 'inconclusive']]
    """Of the report; null until there is one. Additive."""
    aiReportStatus: Optional[Literal['generating', 'completed']]
    """Of the AI report; null until the job is completed. Additive."""
    checklistGeneratedBy: Optional[str]
    """Who wrote the checklist; null if you did, or while there is none. Additive."""
    requeueCount: int
    """How often the SLA was missed and the job queued again. Additive."""
    lastFailedSlaAt: Optional[str]
    """The latest such miss. Additive."""
    erasedAt: NotRequired[str]
    """When the job's texts, pictures and recordings were erased: texts read `[erased]`. Absent unless they
    were. Additive."""
    targetDevice: "NullableTarget"
    targetOS: "NullableTarget"
    targetBrowser: "NullableTarget"
    targetScreenSize: "NullableTarget"
    targetNetwork: "NullableTarget"
    commitSha: Optional[str]
    """Of a deploy: the commit. Additive."""
    branch: Optional[str]
    """Of a deploy: the branch. Additive."""
    environment: Optional[str]
    """Of a deploy: the environment. Additive."""
    openQuestion: Optional["JobOpenQuestion"]
    """The checker's question that waits for your answer, or null. Additive."""
    commitStatus: "CommitStatus"


class CancelledJob(TypedDict):
    jobId: "Id"
    status: Literal['cancelled']
    """Always this."""
    creditsRefunded: "Credits"
    creditsExpired: "CreditsExpired"
    creditsRemaining: "Credits"


class Report(TypedDict):
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    id: "Id"
    jobId: str
    """The report's job. Additive."""
    projectId: NotRequired[Optional[str]]
    """The job's project; null without one. Additive."""
    overallStatus: "OverallStatus"
    passCount: "Count"
    """Items that passed."""
    failCount: "Count"
    """Items that failed."""
    skipCount: "Count"
    """Items that were skipped."""
    checkerSummary: str
    """The checker's words on the whole."""
    items: List["ReportItem"]
    """In the order of the checklist."""
    recordingUrl: Optional[str]
    """A recording of the test, or null; always null for an AI review."""
    recordings: NotRequired[List["AttachedRecording"]]
    """All recordings that were sent while the test was under way, where there are any. Additive."""
    noLongerKept: NotRequired[List["NoLongerKept"]]
    """Evidence that went by a setting, where there is any. Its links answer 410. Additive."""
    questions: NotRequired[List["Question"]]
    """What the checkers asked, where they asked something. Without secrets. Additive."""
    checkerRating: Optional[int]
    """Your rating; null until you rate."""
    createdAt: "Timestamp"


class ReportItem(TypedDict):
    id: str
    """The item's id."""
    description: str
    """What was checked."""
    status: "ItemStatus"
    """The verdict."""
    checkerNote: str
    """What the checker says of it; empty if nothing."""
    screenshotUrl: NotRequired[str]
    """Absent without a screenshot."""
    screenshotUrls: NotRequired[List[str]]
    """All screenshots, `screenshotUrl` first. Absent unless there are several. Additive."""
    key: NotRequired[str]
    """Stable across the project's tests. Additive."""
    expectedOutcome: NotRequired[str]
    """Absent if none was given. Additive."""
    severity: NotRequired[Literal['critical', 'major', 'minor']]
    """How bad a failure of it is. Additive."""
    skipReason: NotRequired[Literal['blocked', 'not_applicable', 'no_access', 'out_of_time']]
    """Of a skip. Additive."""


class Ctrf(TypedDict):
    """Common Test Report Format. Additive."""
    results: Dict[str, Any]
    """As the format has it."""


class BatchReportWithoutReport(TypedDict):
    jobId: "Id"
    status: "JobStatus"


class BatchReport(TypedDict):
    """The reports of a batch. Additive."""
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    batchId: "Id"
    reports: List["Report"]
    """In submitted order."""
    withoutReport: List["BatchReportWithoutReport"]
    """The jobs that ended without one."""


class JobReports(TypedDict):
    """The reports of several jobs. Additive."""
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    reports: List["Report"]
    """In the order of `ids`."""


class AIReport(TypedDict):
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    id: "Id"
    jobId: "Id"
    status: Literal['completed']
    """Always this."""
    executiveSummary: str
    """The analysis in a few sentences."""
    healthScore: int
    """Higher is better. By rules: 100 − 25·critical − 10·major − 3·minor over failed items."""
    bugs: List["Bug"]
    """One entry a bug."""
    passCount: "Count"
    """Items that passed."""
    failCount: "Count"
    """Items that failed."""
    skipCount: "Count"
    """Items that were skipped."""
    strengths: List[str]
    """What works well."""
    recommendations: List[str]
    """What to do next."""
    generatedBy: "GeneratedBy"
    createdAt: str
    """When the analysis was finished. Additive."""
    reportId: str
    """Of the QA report. Additive."""


class Bug(TypedDict):
    title: str
    """The bug in a few words."""
    severity: "Severity"
    description: str
    """What is wrong."""
    reproductionSteps: List[str]
    """In order."""
    suggestedFix: str
    """What would mend it."""
    itemId: NotRequired[Optional[str]]
    """The checklist item it came from. Additive."""


class AIReportGenerating(TypedDict):
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    jobId: "Id"
    status: Literal['generating']
    """Always this."""


class NewRating(TypedDict):
    rating: int
    """From 1, bad, to 5, good."""
    note: NotRequired[Optional[str]]
    """For the checker."""


class Rating(TypedDict):
    jobId: "Id"
    checkerRating: int
    """From 1, bad, to 5, good."""
    note: Optional[str]
    """As submitted, or null."""


class NewBatch(TypedDict):
    jobs: List["NewJob"]
    """1 to 20 jobs. A batch has one commitStatus, beside them: that of a job is not read."""
    commitStatus: NotRequired["NewCommitStatus"]
    """Tells the verdict at a commit, so that it can be a required check: `pending` at once, then `success`,
    `failure`, or `error` where no verdict comes. The service sets it itself when every job of the request has
    ended. The token comes in the header `X-Commit-Token`. Additive."""


class SubmittedBatch(TypedDict):
    batchId: "Id"
    jobIds: List["Id"]
    """In submitted order."""
    totalCreditsDeducted: "Credits"
    estimatedCompletionMinutes: int
    """From the queue: the SLA for normal, half of it for urgent, at least 5."""
    creditsRemaining: int
    """What the account has left. Additive."""
    warnings: NotRequired["Warnings"]


class BatchJobs(TypedDict):
    id: "Id"
    status: "JobStatus"
    title: NotRequired[str]
    """The title. Additive."""
    reportId: NotRequired[str]
    """Absent until a report exists. Additive."""
    overallStatus: NotRequired[Optional[str]]
    """Of its report; null until there is one. Additive."""
    isFinal: NotRequired[bool]
    """The job has ended. Additive."""


class Batch(TypedDict):
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    batchId: "Id"
    overallStatus: Literal['in_progress', 'completed']
    """`in_progress` from the submission until every job has ended, then `completed`."""
    totalJobs: "Count"
    """Jobs that were submitted."""
    completedJobs: int
    """Completed ones only."""
    passCount: int
    """Completed jobs that passed."""
    failCount: int
    """Completed jobs that failed."""
    jobs: List["BatchJobs"]
    """In submitted order."""


class Estimate(TypedDict):
    creditsRequired: "Credits"
    creditsAvailable: "Credits"
    creditsShort: int
    """What is missing; 0 if nothing."""
    sufficient: bool
    """The balance covers it."""
    estimatedCompletionMinutes: int
    """From the queue: the SLA for normal, half of it for urgent, at least 5."""
    slaMinutes: "SlaMinutes"
    jobType: str
    """As asked."""
    jobTypeCode: "JobTypeCode"
    priority: "Priority"
    warnings: NotRequired["Warnings"]


class NewProject(TypedDict):
    name: str
    """Not blank."""
    description: NotRequired[Optional[str]]
    """For people."""
    defaultUrl: NotRequired[Optional[str]]
    """What its jobs and deploys test: a URL that a job of the account may have."""
    defaultJobType: NotRequired[Optional[str]]
    """Any job type, either spelling."""
    defaultSlaMinutes: NotRequired[Optional[int]]
    """15, 30 or 60, for jobs that say nothing of it; null for 60."""
    webhookUrl: NotRequired["WebhookUrl"]
    subscribedWebhookEvents: NotRequired["EventNames"]
    webhookHeaders: NotRequired["WebhookHeaders"]
    """Your own headers of deliveries, such as `Authorization`: at most 10, values of at most 2,048 printable
    ASCII characters, 4,096 in all. A value adds or replaces its header, null removes it, and null instead of
    the object removes all; headers that are not named stay. They are sealed, and no answer ever holds a
    value. They are sent only to the scheme, host and port that the webhook has when they are set: after a
    change of host set them again. Names that HTTP or the service sets are 400: `Host`, `Content-*`, `User-
    Agent`, `webhook-*`, `X-Service-*` and the like. They count only with a webhook URL. Additive."""


class CreatedProject(TypedDict):
    projectId: "Id"
    name: str
    """The project's name."""
    deployHookUrl: str
    """Secret: whoever has it can spend your credits. Shown only here."""
    warnings: NotRequired["Warnings"]


class NewHookSignature(TypedDict):
    """A signature that each call of the deploy hook needs, as a second factor; a call without it is 401, and
    nothing is submitted. `github`: X-Hub-Signature-256. `vercel`: X-Vercel-Signature. `netlify`: X-Webhook-
    Signature. `gitlab`: the secret in X-Gitlab-Token. `standard`: Standard Webhooks, as of Render, within
    five minutes. Null needs none."""
    scheme: Literal['github', 'vercel', 'netlify', 'gitlab', 'standard']
    """Whose signature it is."""
    secret: str
    """The platform's secret. It is sealed, and never shown."""


class ProjectChange(TypedDict):
    name: NotRequired[str]
    """Blank or null is 400."""
    description: NotRequired[Optional[str]]
    """Null or '' clears."""
    defaultUrl: NotRequired[Optional[str]]
    """Null or '' clears."""
    defaultJobType: NotRequired[Optional[str]]
    """Null or '' clears."""
    defaultSlaMinutes: NotRequired[Optional[int]]
    """15, 30 or 60; null clears."""
    webhookUrl: NotRequired[str]
    """HTTPS, as at creation. A new URL keeps the secret, or gets one if there is none. '' clears the URL and
    the list of events, and keeps the secret. Null is 400."""
    subscribedWebhookEvents: NotRequired[List["EventName"]]
    """Replaces the list; applied only with a webhook URL, now or before. Empty: no deliveries. Null is
    400."""
    deployHookSignature: NotRequired["NewHookSignature"]
    """A signature that each call of the deploy hook needs, as a second factor; a call without it is 401, and
    nothing is submitted. `github`: X-Hub-Signature-256. `vercel`: X-Vercel-Signature. `netlify`: X-Webhook-
    Signature. `gitlab`: the secret in X-Gitlab-Token. `standard`: Standard Webhooks, as of Render, within
    five minutes. Null needs none. Additive."""
    webhookHeaders: NotRequired["WebhookHeaders"]
    """Your own headers of deliveries, such as `Authorization`: at most 10, values of at most 2,048 printable
    ASCII characters, 4,096 in all. A value adds or replaces its header, null removes it, and null instead of
    the object removes all; headers that are not named stay. They are sealed, and no answer ever holds a
    value. They are sent only to the scheme, host and port that the webhook has when they are set: after a
    change of host set them again. Names that HTTP or the service sets are 400: `Host`, `Content-*`, `User-
    Agent`, `webhook-*`, `X-Service-*` and the like. They count only with a webhook URL. Additive."""
    loopAlertsSnoozedUntil: NotRequired[Optional[str]]
    """No loop_session.ended until then; null ends the snooze. Additive."""
    questionMinutes: NotRequired[Optional[int]]
    """How long a checker's question waits for your answer; 0: checkers cannot ask; null: 30. Additive."""
    keepEvidenceDays: NotRequired[Optional[int]]
    """Days after a job's end that its evidence is kept; null: as the account says. The shorter of the two
    counts. Additive."""
    keepRecordingsDays: NotRequired[Optional[int]]
    """The same for recordings. Additive."""


class Rotation(TypedDict):
    at: "Timestamp"
    userId: Optional[str]
    """The person who rotated; null where none did."""
    keyId: Optional[str]
    """The API key that did; null where none did. Additive."""


class Project(TypedDict):
    projectId: "Id"
    id: str
    """The same as projectId. Additive."""
    name: str
    """The project's name."""
    description: Optional[str]
    """For people, or null."""
    defaultUrl: Optional[str]
    """What its jobs and deploys test, or null."""
    defaultJobType: Optional[str]
    """As submitted, or null."""
    defaultSlaMinutes: Optional[int]
    """15, 30 or 60, for jobs that say nothing of it; null for 60."""
    webhookUrl: Optional[str]
    """Where events are delivered; null without a webhook."""
    webhookSecretRotatedAt: Optional[str]
    """The latest rotation; null before the first."""
    webhookSecretRotations: Optional[List["Rotation"]]
    """The five most recent, newest first; null without a webhook."""
    subscribedWebhookEvents: List[str]
    """Never set, with a URL: all six names, and allWebhookEvents. Without a URL: empty."""
    createdAt: "Timestamp"
    """RFC 3339, UTC, milliseconds, Z. Additive."""
    updatedAt: "Timestamp"
    allWebhookEvents: bool
    """Every kind of event is delivered, also those that cannot be named. Additive."""
    webhookDisabled: bool
    """Deliveries failed for good; see webhook/enable. Additive."""
    webhookDisabledReason: Optional[str]
    """Why. Additive."""
    webhookHealth: "WebhookHealth"
    """How the webhook does; null without one. Additive."""
    webhookSecretPreviousValidUntil: Optional[str]
    """While a rotation overlaps: until when the old secret signs, too. Additive."""
    webhookHeaderNames: List[str]
    """The names of your own headers that deliveries to this URL carry. Their values are never shown.
    Additive."""
    deployHookSignature: Optional[Literal['github', 'vercel', 'netlify', 'gitlab', 'standard']]
    """The signature that each call of the deploy hook needs beside the token in its URL; null: none. The
    secret is never shown. Additive."""
    loopAlertsSnoozedUntil: Optional[str]
    """No loop_session.ended until then. Additive."""
    questionMinutes: NotRequired[int]
    """How long a checker's question waits for your answer; 0: checkers cannot ask. Additive."""
    keepEvidenceDays: NotRequired[Optional[int]]
    """Days after a job's end that its evidence is kept; null: as the account says. The shorter of the two
    counts. Additive."""
    keepRecordingsDays: NotRequired[Optional[int]]
    """The same for recordings. Additive."""
    evidenceHeld: NotRequired[bool]
    """A hold on the project keeps its evidence, whatever the settings say. Additive."""
    warnings: NotRequired["Warnings"]


class CountedProject(TypedDict):
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    id: "Id"
    projectId: str
    """The same as id. Additive."""
    name: str
    """The project's name."""
    description: Optional[str]
    """What to check. Additive."""
    defaultUrl: Optional[str]
    """What its jobs and deploys test, or null."""
    defaultJobType: Optional[str]
    """As submitted, or null. Additive."""
    defaultSlaMinutes: Optional[int]
    """15, 30 or 60, for jobs that say nothing of it; null for 60. Additive."""
    webhookUrl: Optional[str]
    """Where events are delivered; null without a webhook. Additive."""
    webhookSecretRotatedAt: Optional[str]
    """The latest rotation; null before the first."""
    webhookSecretRotations: Optional[List["Rotation"]]
    """The five most recent, newest first; null without a webhook."""
    subscribedWebhookEvents: List[str]
    """Never set, with a URL: all six names, and allWebhookEvents. Without a URL: empty. Additive."""
    createdAt: "Timestamp"
    updatedAt: "Timestamp"
    """RFC 3339, UTC, milliseconds, Z. Additive."""
    allWebhookEvents: bool
    """Every kind of event is delivered, also those that cannot be named. Additive."""
    webhookDisabled: bool
    """Deliveries failed for good; see webhook/enable. Additive."""
    webhookDisabledReason: Optional[str]
    """Why. Additive."""
    webhookHealth: "WebhookHealth"
    """How the webhook does; null without one. Additive."""
    webhookSecretPreviousValidUntil: Optional[str]
    """While a rotation overlaps: until when the old secret signs, too. Additive."""
    webhookHeaderNames: List[str]
    """The names of your own headers that deliveries to this URL carry. Their values are never shown.
    Additive."""
    deployHookSignature: Optional[Literal['github', 'vercel', 'netlify', 'gitlab', 'standard']]
    """The signature that each call of the deploy hook needs beside the token in its URL; null: none. The
    secret is never shown. Additive."""
    loopAlertsSnoozedUntil: Optional[str]
    """No loop_session.ended until then. Additive."""
    questionMinutes: NotRequired[int]
    """How long a checker's question waits for your answer; 0: checkers cannot ask. Additive."""
    keepEvidenceDays: NotRequired[Optional[int]]
    """Days after a job's end that its evidence is kept; null: as the account says. The shorter of the two
    counts. Additive."""
    keepRecordingsDays: NotRequired[Optional[int]]
    """The same for recordings. Additive."""
    evidenceHeld: NotRequired[bool]
    """A hold on the project keeps its evidence, whatever the settings say. Additive."""
    jobCount: "Count"
    """Jobs of the project."""
    completedCount: int
    """Jobs with a report. Additive."""
    passRate: float
    """Passed / completed tests; 0 without tests: see `completedCount`."""


class ProjectList(TypedDict):
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    projects: List["CountedProject"]
    """Newest first."""
    total: int
    """On all pages. Additive."""
    limit: int
    """As asked. Additive."""
    offset: int
    """As asked. Additive."""


class ProjectHistoryLatestFailures(TypedDict):
    id: str
    """The item's id."""
    description: str
    """What was checked."""
    severity: Literal['Critical', 'Major', 'Minor']
    """How bad it is, capitalised here."""
    key: NotRequired[str]
    """Stable across tests. Additive."""
    jobId: NotRequired[str]
    """The test. Additive."""


class ProjectHistoryTrend(TypedDict):
    jobId: "Id"
    overallStatus: Literal['PASS', 'FAIL', 'INCONCLUSIVE']
    """As of the report, in upper case here."""
    healthScore: Optional[int]
    """Null without an AI report."""
    passCount: int
    """Items."""
    failCount: int
    """Items."""
    testedAt: "Timestamp"


class ProjectHistoryPreparedRegressions(TypedDict):
    bugIds: List[str]
    """Items that were named as fixed."""
    descriptions: List[str]
    """What will be verified."""
    preparedAt: "Timestamp"


class ProjectHistory(TypedDict):
    asOf: NotRequired[str]
    """What `?asOf=` named; absent without it. Additive."""
    projectId: "Id"
    projectName: str
    """The project's name."""
    totalTests: "Count"
    """Completed tests."""
    passCount: int
    """Jobs."""
    failCount: int
    """Jobs."""
    completedCount: int
    """The same as `totalTests`: what `passRate` is of. Additive."""
    passRate: float
    """Per cent of the completed tests; 0 without tests: see `completedCount`."""
    averageHealthScore: float
    """Tests without an AI report are left out; 0 if none has one."""
    scoredTests: int
    """How many tests averageHealthScore covers. Additive."""
    latestFailures: List["ProjectHistoryLatestFailures"]
    """Of the latest test."""
    regressions: List[str]
    """Descriptions of items, matched by key, that passed in the previous test and failed in the latest."""
    trend: List["ProjectHistoryTrend"]
    """The ten latest tests, newest first."""
    preparedRegressions: List["ProjectHistoryPreparedRegressions"]
    """Fixes queued for the next test."""


class OpenFailuresOpenFailures(TypedDict):
    id: str
    """The item in the latest test that had it."""
    key: str
    """Stable across the project's tests."""
    description: str
    """What was checked."""
    expectedOutcome: NotRequired[Optional[str]]
    """What should happen, or null."""
    severity: Literal['critical', 'major', 'minor']
    """How bad the failure is."""
    jobId: "Id"
    failedAt: "Timestamp"
    firstFailedAt: str
    """When this row of failures began."""
    failedTests: int
    """Tests in this row."""
    lastPassedAt: Optional[str]
    """Null if it never did."""


class OpenFailures(TypedDict):
    projectId: "Id"
    openFailures: List["OpenFailuresOpenFailures"]
    """Newest first."""


class NewRecording(TypedDict):
    startedMsAgo: NotRequired[Optional[int]]
    """How long ago the first frame was taken, in milliseconds: your verdicts are shown at their moments.
    Absent: 0."""


class Recording(TypedDict):
    """A recording that is being sent, or was. Additive."""
    recordingId: "Id"
    jobId: "Id"
    status: Literal['open', 'finished', 'attached']
    """`attached` is the job's, and in its report."""
    offset: int
    """Bytes that are there, for good."""
    partLimit: int
    """Bytes that one request may have."""
    limit: int
    """Bytes that all your recordings of the job may have; those that you begin in 24 hours may have eight
    times as many."""
    startedAt: "Timestamp"


class AttachedRecording(TypedDict):
    """A recording of the test. Additive."""
    id: "Id"
    url: str
    """A signed link to the file, for 15 minutes; ranges may be asked for."""
    contentType: Literal['video/webm', 'video/mp4']
    """What the file is."""
    size: int
    """Bytes."""
    startedAt: "Timestamp"
    durationMs: Optional[int]
    """How long it lasts, in milliseconds; null where that is not known."""


class EventCatalogue(TypedDict):
    """Additive."""
    events: List["EventType"]
    """The types of events that webhooks carry."""


class EventTypeExamples(TypedDict):
    summary: str
    """The case."""
    value: Dict[str, Any]
    """The body."""


class EventType(TypedDict):
    """Additive."""
    name: str
    """As `event` of the body has it."""
    description: str
    """When it happens."""
    sent: str
    """Which webhooks get it."""
    additive: bool
    """It is beyond the specification."""
    schema: Dict[str, Any]
    """JSON Schema 2020-12 of the body, with all that it refers to."""
    examples: List["EventTypeExamples"]
    """Bodies as they are sent."""


class BeginDeviceLogin(TypedDict):
    """Additive."""
    client: NotRequired[Optional[str]]
    """What the client calls itself; the person reads it."""


class DeviceLogin(TypedDict):
    """Additive."""
    deviceCode: str
    """The client's secret."""
    userCode: str
    """What the person compares."""
    verificationUrl: str
    """The page that asks for the person's word."""
    expiresInSeconds: int
    """When the sign-in is over."""
    intervalSeconds: int
    """How long to wait between two questions."""


class CollectDeviceLogin(TypedDict):
    """Additive."""
    deviceCode: str
    """Of the sign-in."""


class CollectedLogin(TypedDict):
    """Additive."""
    status: Literal['pending', 'approved']
    """`pending` until a person has answered."""
    accountId: NotRequired[str]
    """The account of the key."""
    keyId: NotRequired[str]
    """The key's id, by which it can be revoked."""
    apiKey: NotRequired[str]
    """The key; shown once."""


class HealthNotes(TypedDict):
    part: str
    """Which part."""
    reason: str
    """What there is to know."""


class Health(TypedDict):
    status: Literal['ok', 'ready']
    """How it stands."""
    notes: NotRequired[List["HealthNotes"]]
    """Of /readyz: what an operator should know all the same, such as that rows of one stream are not kept up
    to date."""


class AdvanceClock(TypedDict):
    seconds: int
    """How far to go forward; a year at most."""


class Clock(TypedDict):
    now: "Timestamp"
    offsetSeconds: int
    """How far the account's time is ahead in all."""
    advancedSeconds: int
    """By this call."""


class PlayResults(TypedDict):
    item: str
    """The item's id or key."""
    status: "ItemStatus"
    """The verdict."""
    note: NotRequired[Optional[str]]
    """What the checker says of it."""
    severity: NotRequired[Optional[str]]
    """Default: the item's."""
    reason: NotRequired["SkipReason"]


class PlayQuestion(TypedDict):
    """What the robot asks before it gives its verdicts. Without an answer its item is skipped. Additive."""
    text: str
    """Its words."""
    kind: NotRequired[Optional[Literal['code', 'access', 'meaning', 'other']]]
    """What it needs. Default: other."""
    item: NotRequired[Optional[str]]
    """The item's id or key. Absent: it is about the whole test."""


class Play(TypedDict):
    results: NotRequired[List["PlayResults"]]
    """Items that are not named pass."""
    summary: NotRequired[Optional[str]]
    """The outcome in a few sentences."""
    question: NotRequired["PlayQuestion"]
    """What the robot asks before it gives its verdicts. Without an answer its item is skipped. Additive."""


class AskedJob(TypedDict):
    """Additive."""
    jobId: "Id"
    status: Literal['claimed']
    """Always this."""
    question: "Question"


class ReadySlots(TypedDict):
    slots: NotRequired[List[int]]
    """Default: all of them."""


class ReadySession(TypedDict):
    sessionId: "Id"
    status: Literal['lobby', 'active']
    """`active` once every slot is ready."""
    readyCount: "Count"
    """Slots that are ready."""
    checkerCount: "Count"
    """Number of slots."""


class Credentials(TypedDict):
    """What a checker needs to sign in. Encrypted at rest with AES-256-GCM; shown to the current claimant
    only."""
    username: NotRequired[Optional[str]]
    """The name to sign in with."""
    password: NotRequired[Optional[str]]
    """The password."""
    notes: NotRequired[Optional[str]]
    """Anything else about signing in."""


class NewChecklistItem(TypedDict):
    description: str
    """What to check."""
    expectedOutcome: NotRequired[Optional[str]]
    """What should happen."""
    severity: NotRequired["SeverityInput"]
    key: NotRequired[Optional[str]]
    """Stable across the project's tests: regressions match by it. Derived from the description if absent.
    Additive."""


class ChecklistProgress(TypedDict):
    totalItems: "Count"
    """Items of the checklist."""
    checkedItems: "Count"
    """Items with a verdict."""
    passedItems: "Count"
    """Items that passed."""
    failedItems: "Count"
    """Items that failed."""
    skippedItems: "Count"
    """Items that were skipped."""


class WebhookJobCreatedData(TypedDict):
    """What happened; the fields depend on the kind of event."""
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    title: str
    """The job's title. Additive."""
    url: str
    """The URL under test. Additive."""
    jobType: str
    """The spelling that was submitted, or found. Additive."""
    jobTypeCode: NotRequired["JobTypeCode"]
    status: "JobStatus"
    """`pending` → `claimed` → `completed`; `cancelled` and `failed` are the other ends. A missed SLA takes a
    claimed job back to `pending`, the third time to `failed` with a full refund. A job never fails because
    items failed. Additive."""
    priority: "Priority"
    """`urgent` costs twice as much and jumps the queue. Additive."""
    sessionId: Optional[str]
    """Of a session's slot, else null. Additive."""
    createdAt: "Timestamp"
    """RFC 3339, UTC, milliseconds, Z. Additive."""
    slaMinutes: "SlaMinutes"
    """Minutes from creation, or re-queueing, to the report. Additive."""
    creditsDeducted: "Credits"
    """Whole credits. Additive."""
    checklistItemCount: "Count"
    """Items of the checklist; 0 while it is being written. Additive."""
    source: Literal['api', 'hosted', 'session', 'retest', 'bulk', 'deploy', 'loop']
    """How it was submitted. Additive."""


class WebhookJobCreated(TypedDict):
    """How the job was submitted is its `source`."""
    event: str
    """The kind of event."""
    type: str
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookJobCreatedData"
    """What happened; the fields depend on the kind of event."""


class WebhookQuestionAskedData(TypedDict):
    """What happened; the fields depend on the kind of event."""
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    title: str
    """The job's title. Additive."""
    url: str
    """The URL under test. Additive."""
    jobType: str
    """The spelling that was submitted, or found. Additive."""
    jobTypeCode: NotRequired["JobTypeCode"]
    status: "JobStatus"
    """`pending` → `claimed` → `completed`; `cancelled` and `failed` are the other ends. A missed SLA takes a
    claimed job back to `pending`, the third time to `failed` with a full refund. A job never fails because
    items failed. Additive."""
    priority: "Priority"
    """`urgent` costs twice as much and jumps the queue. Additive."""
    sessionId: Optional[str]
    """Of a session's slot, else null. Additive."""
    questionId: str
    """Answer it by this id."""
    itemId: Optional[str]
    """The item that it is about; null: the whole test."""
    kind: Literal['code', 'access', 'meaning', 'other']
    """What the checker needs."""
    text: str
    """The checker's words. Untrusted text."""
    askedAt: "Timestamp"
    until: str
    """How long it waits. Without an answer the item is skipped then."""


class WebhookQuestionAsked(TypedDict):
    """Never the identity of the checker. Additive."""
    event: str
    """The kind of event."""
    type: str
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookQuestionAskedData"
    """What happened; the fields depend on the kind of event."""


class WebhookQuestionAnsweredData(TypedDict):
    """What happened; the fields depend on the kind of event."""
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    title: str
    """The job's title. Additive."""
    url: str
    """The URL under test. Additive."""
    jobType: str
    """The spelling that was submitted, or found. Additive."""
    jobTypeCode: NotRequired["JobTypeCode"]
    status: "JobStatus"
    """`pending` → `claimed` → `completed`; `cancelled` and `failed` are the other ends. A missed SLA takes a
    claimed job back to `pending`, the third time to `failed` with a full refund. A job never fails because
    items failed. Additive."""
    priority: "Priority"
    """`urgent` costs twice as much and jumps the queue. Additive."""
    sessionId: Optional[str]
    """Of a session's slot, else null. Additive."""
    questionId: str
    """The question."""
    answer: str
    """The client's words; empty if a secret was all."""
    hasSecret: bool
    """A secret came with the answer."""
    answeredAt: "Timestamp"
    dueAt: str
    """When the SLA ends now."""


class WebhookQuestionAnswered(TypedDict):
    """Never the secret that came with the answer. Additive."""
    event: str
    """The kind of event."""
    type: str
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookQuestionAnsweredData"
    """What happened; the fields depend on the kind of event."""


class WebhookJobClaimedData(TypedDict):
    """What happened; the fields depend on the kind of event."""
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    title: str
    """The job's title. Additive."""
    url: str
    """The URL under test. Additive."""
    jobType: str
    """The spelling that was submitted, or found. Additive."""
    jobTypeCode: NotRequired["JobTypeCode"]
    status: "JobStatus"
    """`pending` → `claimed` → `completed`; `cancelled` and `failed` are the other ends. A missed SLA takes a
    claimed job back to `pending`, the third time to `failed` with a full refund. A job never fails because
    items failed. Additive."""
    priority: "Priority"
    """`urgent` costs twice as much and jumps the queue. Additive."""
    sessionId: Optional[str]
    """Of a session's slot, else null. Additive."""
    claimedAt: "Timestamp"
    """RFC 3339, UTC, milliseconds, Z. Additive."""


class WebhookJobClaimed(TypedDict):
    """Never the identity of the checker."""
    event: str
    """The kind of event."""
    type: str
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookJobClaimedData"
    """What happened; the fields depend on the kind of event."""


class WebhookJobCompletedDataChecklist(TypedDict):
    description: str
    """What was checked."""
    status: "ItemStatus"
    """The verdict."""
    severity: "Severity"
    notes: NotRequired[str]
    """Absent without a note."""


class WebhookJobCompletedData(TypedDict):
    """What happened; the fields depend on the kind of event."""
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    title: str
    """The job's title."""
    url: str
    """The URL under test."""
    jobType: str
    """The spelling that was submitted, or found."""
    jobTypeCode: NotRequired["JobTypeCode"]
    status: "JobStatus"
    priority: "Priority"
    """`urgent` costs twice as much and jumps the queue. Additive."""
    sessionId: Optional[str]
    """Of a session's slot, else null. Additive."""
    reportId: str
    """The report's id."""
    overallStatus: "OverallStatus"
    passCount: "Count"
    """Items that passed."""
    failCount: "Count"
    """Items that failed."""
    skipCount: "Count"
    """Items that were skipped."""
    summary: str
    """The outcome in a few sentences."""
    aiReport: "WebhookAIReportOrNull"
    """Null until it is ready."""
    overallScore: int
    """The health score by rules, 0 to 100."""
    criticalIssues: "Count"
    """Failed items of this severity."""
    majorIssues: "Count"
    """Failed items of this severity."""
    minorIssues: "Count"
    """Failed items of this severity."""
    completedAt: "Timestamp"
    checklist: List["WebhookJobCompletedDataChecklist"]
    """The items, with their verdicts."""


class WebhookJobCompleted(TypedDict):
    """The union of both documented variants."""
    event: str
    """The kind of event."""
    type: str
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookJobCompletedData"
    """What happened; the fields depend on the kind of event."""


class WebhookAIReportReadyData(TypedDict):
    """What happened; the fields depend on the kind of event."""
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    title: str
    """The job's title. Additive."""
    url: str
    """The URL under test. Additive."""
    jobType: str
    """The spelling that was submitted, or found. Additive."""
    jobTypeCode: NotRequired["JobTypeCode"]
    status: "JobStatus"
    """`pending` → `claimed` → `completed`; `cancelled` and `failed` are the other ends. A missed SLA takes a
    claimed job back to `pending`, the third time to `failed` with a full refund. A job never fails because
    items failed. Additive."""
    priority: "Priority"
    """`urgent` costs twice as much and jumps the queue. Additive."""
    sessionId: Optional[str]
    """Of a session's slot, else null. Additive."""
    reportId: str
    """The QA report's id. Additive."""
    aiReport: "WebhookAIReport"
    """The analysis. Additive."""


class WebhookAIReportReady(TypedDict):
    """Fires separately after job.completed."""
    event: str
    """The kind of event."""
    type: str
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookAIReportReadyData"
    """What happened; the fields depend on the kind of event."""


class WebhookJobFailedSlaData(TypedDict):
    """What happened; the fields depend on the kind of event."""
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    title: str
    """The job's title. Additive."""
    url: str
    """The URL under test. Additive."""
    jobType: str
    """The spelling that was submitted, or found. Additive."""
    jobTypeCode: NotRequired["JobTypeCode"]
    status: "JobStatus"
    """`pending` → `claimed` → `completed`; `cancelled` and `failed` are the other ends. A missed SLA takes a
    claimed job back to `pending`, the third time to `failed` with a full refund. A job never fails because
    items failed. Additive."""
    priority: "Priority"
    """`urgent` costs twice as much and jumps the queue. Additive."""
    sessionId: Optional[str]
    """Of a session's slot, else null. Additive."""
    slaMinutes: "SlaMinutes"
    """Minutes from creation, or re-queueing, to the report. Additive."""
    requeueCount: "Count"
    """How often the job was queued again. Additive."""
    requeued: bool
    """The job is in the queue again. Additive."""
    creditsRefunded: "Credits"
    """Whole credits. Additive."""
    creditsExpired: "CreditsExpired"
    """What of the refund went into credits that had expired by then; `creditsRefunded` leaves it out.
    Additive."""


class WebhookJobFailedSla(TypedDict):
    """After the third miss `requeued` is false and everything is refunded."""
    event: str
    """The kind of event."""
    type: str
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookJobFailedSlaData"
    """What happened; the fields depend on the kind of event."""


class WebhookJobCancelledData(TypedDict):
    """What happened; the fields depend on the kind of event."""
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    title: str
    """The job's title. Additive."""
    url: str
    """The URL under test. Additive."""
    jobType: str
    """The spelling that was submitted, or found. Additive."""
    jobTypeCode: NotRequired["JobTypeCode"]
    status: "JobStatus"
    """`pending` → `claimed` → `completed`; `cancelled` and `failed` are the other ends. A missed SLA takes a
    claimed job back to `pending`, the third time to `failed` with a full refund. A job never fails because
    items failed. Additive."""
    priority: "Priority"
    """`urgent` costs twice as much and jumps the queue. Additive."""
    sessionId: Optional[str]
    """Of a session's slot, else null. Additive."""
    cancelledAt: "Timestamp"
    """RFC 3339, UTC, milliseconds, Z. Additive."""
    reason: Literal['client', 'session_expired', 'session_cancelled', 'operator', 'superseded']
    """Why, in a few words. Additive."""
    creditsRefunded: "Credits"
    """Whole credits. Additive."""
    creditsExpired: "CreditsExpired"
    """What of the refund went into credits that had expired by then; `creditsRefunded` leaves it out.
    Additive."""


class WebhookJobCancelled(TypedDict):
    """Who cancelled is the `reason`."""
    event: str
    """The kind of event."""
    type: str
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookJobCancelledData"
    """What happened; the fields depend on the kind of event."""


class WebhookJobFailedData(TypedDict):
    """What happened; the fields depend on the kind of event."""
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    title: str
    """The job's title. Additive."""
    url: str
    """The URL under test. Additive."""
    jobType: str
    """The spelling that was submitted, or found. Additive."""
    jobTypeCode: NotRequired["JobTypeCode"]
    status: "JobStatus"
    """`pending` → `claimed` → `completed`; `cancelled` and `failed` are the other ends. A missed SLA takes a
    claimed job back to `pending`, the third time to `failed` with a full refund. A job never fails because
    items failed. Additive."""
    priority: "Priority"
    """`urgent` costs twice as much and jumps the queue. Additive."""
    sessionId: Optional[str]
    """Of a session's slot, else null. Additive."""
    failedAt: "Timestamp"
    """RFC 3339, UTC, milliseconds, Z. Additive."""
    reason: Literal['sla', 'untestable', 'operator']
    """Why, in a few words. Additive."""
    failNote: NotRequired[Optional[str]]
    """The reasons and notes of checkers that could not test the job, a line each; null without any.
    Additive."""
    creditsRefunded: "Credits"
    """Whole credits. Additive."""
    creditsExpired: "CreditsExpired"
    """What of the refund went into credits that had expired by then; `creditsRefunded` leaves it out.
    Additive."""


class WebhookJobFailed(TypedDict):
    event: str
    """The kind of event."""
    type: str
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookJobFailedData"
    """What happened; the fields depend on the kind of event."""


class WebhookAIReportBugs(TypedDict):
    title: str
    """The bug in a few words."""
    severity: "Severity"
    suggestedFix: str
    """What would mend it."""


class WebhookAIReport(TypedDict):
    id: str
    """The item's id."""
    status: Literal['completed']
    """Always this."""
    healthScore: int
    """0 to 100, higher is better."""
    executiveSummary: str
    """The analysis in a few sentences."""
    bugCount: "Count"
    """Number of bugs."""
    bugs: List["WebhookAIReportBugs"]
    """One entry a bug."""
    strengths: List[str]
    """What works well."""
    recommendations: List[str]
    """What to do next."""


class WebhookSessionDataSlots(TypedDict):
    slot: int
    """Number of the slot, from 1."""
    roleLabel: str
    """What the checker plays."""
    jobId: str
    """The job."""
    status: Literal['waiting', 'ready', 'active', 'dropped', 'ended']
    """The state of the slot."""


class WebhookSessionData(TypedDict):
    """What happened; the fields depend on the kind of event."""
    projectId: str
    """The project."""
    sessionId: str
    """The session's id. Additive."""
    status: "SessionStatus"
    """`lobby` → `active` once all slots are ready, or at the deadline with at least two (empty slots are
    cancelled and refunded); with fewer → `expired`, everything refunded. `completed` when every live slot's
    job has ended. A closed session refuses every write: 409. Additive."""
    checkerCount: int
    """Number of slots. Additive."""
    readyCount: "Count"
    """Slots that are ready. Additive."""
    slots: List["WebhookSessionDataSlots"]
    """In submitted order. Additive."""
    sessionUrl: str
    """A dashboard page. Additive."""
    passCount: NotRequired["Count"]
    """Of job.session_completed: jobs that passed. Additive."""
    failCount: NotRequired["Count"]
    """Of job.session_completed: jobs that failed. Additive."""


class WebhookSession(TypedDict):
    """job.session_ready and job.session_completed; only the latter has the counts of jobs."""
    event: str
    """The kind of event."""
    type: str
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    data: "WebhookSessionData"
    """What happened; the fields depend on the kind of event."""


class WebhookLoopEndedData(TypedDict):
    """What happened; the fields depend on the kind of event."""
    projectId: str
    """The project."""
    loopSessionId: NotRequired[str]
    """The loop session, for GET /v1/loop-sessions. Additive."""
    finalStatus: Literal['stuck_same_bug', 'out_of_credits', 'max_iterations']
    """How the loop ended."""
    iterations: "Count"
    """Tests of the loop."""
    creditsSpent: "Credits"
    platform: str
    """The agent's skill."""
    projectName: str
    """The project's name."""
    finalReportId: Optional[str]
    """The report of the last completed test; null without one."""


class WebhookLoopEnded(TypedDict):
    """The loop was stuck on the same bug, out of credits or at its cap; not sent while alerts are snoozed."""
    event: str
    """The kind of event."""
    type: str
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    data: "WebhookLoopEndedData"
    """What happened; the fields depend on the kind of event."""


class WebhookAccountWebhookDisabledData(TypedDict):
    """Which webhook, and why."""
    accountId: str
    """The account."""
    projectId: str
    """The project."""
    projectName: str
    """The project's name."""
    deliveryId: Optional[str]
    """The delivery that failed for good; null where somebody disabled the webhook."""
    reason: str
    """What went wrong."""
    disabledAt: str
    """Since when nothing is sent."""
    projectUrl: str
    """The project's dashboard page."""


class WebhookAccountWebhookDisabled(TypedDict):
    """The webhook of a project of the account was disabled."""
    event: str
    """The kind of event."""
    type: str
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    data: "WebhookAccountWebhookDisabledData"
    """Which webhook, and why."""


class WebhookAccountCreditsLowData(TypedDict):
    """What is left."""
    accountId: str
    """The account."""
    available: "Credits"
    below: "Credits"
    creditsUrl: str
    """The dashboard's page of credits."""


class WebhookAccountCreditsLow(TypedDict):
    """A test took the account's credits below the limit."""
    event: str
    """The kind of event."""
    type: str
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: Optional[str]
    """None: it is about the whole account."""
    data: "WebhookAccountCreditsLowData"
    """What is left."""


class WebhookAIReportOrNullBugs(TypedDict):
    title: str
    """The bug in a few words."""
    severity: "Severity"
    suggestedFix: str
    """What would mend it."""


class WebhookAIReportOrNull(TypedDict):
    id: str
    """The item's id."""
    status: Literal['completed']
    """Always this."""
    healthScore: int
    """0 to 100, higher is better."""
    executiveSummary: str
    """The analysis in a few sentences."""
    bugCount: "Count"
    """Number of bugs."""
    bugs: List["WebhookAIReportOrNullBugs"]
    """One entry a bug."""
    strengths: List[str]
    """What works well."""
    recommendations: List[str]
    """What to do next."""


class AccountCreditsLowEvent(TypedDict):
    """A test took the account's credits below the limit."""
    event: Literal['account.credits_low']
    """The kind of event."""
    type: Literal['account.credits_low']
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: Optional[str]
    """None: it is about the whole account."""
    data: "WebhookAccountCreditsLowData"


class AccountWebhookDisabledEvent(TypedDict):
    """The webhook of a project of the account was disabled."""
    event: Literal['account.webhook_disabled']
    """The kind of event."""
    type: Literal['account.webhook_disabled']
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    data: "WebhookAccountWebhookDisabledData"


class JobAiReportReadyEvent(TypedDict):
    """Fires separately after job.completed."""
    event: Literal['job.ai_report_ready']
    """The kind of event."""
    type: Literal['job.ai_report_ready']
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookAIReportReadyData"


class JobCancelledEvent(TypedDict):
    """Who cancelled is the `reason`."""
    event: Literal['job.cancelled']
    """The kind of event."""
    type: Literal['job.cancelled']
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookJobCancelledData"


class JobClaimedEvent(TypedDict):
    """Never the identity of the checker."""
    event: Literal['job.claimed']
    """The kind of event."""
    type: Literal['job.claimed']
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookJobClaimedData"


class JobCompletedEvent(TypedDict):
    """The union of both documented variants."""
    event: Literal['job.completed']
    """The kind of event."""
    type: Literal['job.completed']
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookJobCompletedData"


class JobCreatedEvent(TypedDict):
    """How the job was submitted is its `source`."""
    event: Literal['job.created']
    """The kind of event."""
    type: Literal['job.created']
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookJobCreatedData"


class JobFailedEvent(TypedDict):
    event: Literal['job.failed']
    """The kind of event."""
    type: Literal['job.failed']
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookJobFailedData"


class JobFailedSlaEvent(TypedDict):
    """After the third miss `requeued` is false and everything is refunded."""
    event: Literal['job.failed_sla']
    """The kind of event."""
    type: Literal['job.failed_sla']
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookJobFailedSlaData"


class JobQuestionAnsweredEvent(TypedDict):
    """Never the secret that came with the answer. Additive."""
    event: Literal['job.question_answered']
    """The kind of event."""
    type: Literal['job.question_answered']
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookQuestionAnsweredData"


class JobQuestionAskedEvent(TypedDict):
    """Never the identity of the checker. Additive."""
    event: Literal['job.question_asked']
    """The kind of event."""
    type: Literal['job.question_asked']
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    jobId: str
    """The job."""
    dashboardReportUrl: str
    """A page for people about the job."""
    data: "WebhookQuestionAskedData"


class JobSessionCompletedEvent(TypedDict):
    """job.session_ready and job.session_completed; only the latter has the counts of jobs."""
    event: Literal['job.session_completed']
    """The kind of event."""
    type: Literal['job.session_completed']
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    data: "WebhookSessionData"


class JobSessionReadyEvent(TypedDict):
    """job.session_ready and job.session_completed; only the latter has the counts of jobs."""
    event: Literal['job.session_ready']
    """The kind of event."""
    type: Literal['job.session_ready']
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    data: "WebhookSessionData"


class LoopSessionEndedEvent(TypedDict):
    """The loop was stuck on the same bug, out of credits or at its cap; not sent while alerts are snoozed."""
    event: Literal['loop_session.ended']
    """The kind of event."""
    type: Literal['loop_session.ended']
    """The same as `event`."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    data: "WebhookLoopEndedData"


class WebhookTestEvent(TypedDict):
    """Sent only where somebody asked for it."""
    event: Literal['webhook.test']
    """The event."""
    type: Literal['webhook.test']
    """The same as event."""
    timestamp: "Timestamp"
    projectId: str
    """The project."""
    data: "WebhookTestData"


HostedJobType = Optional[str]
SessionStatus = Literal['lobby', 'active', 'completed', 'expired', 'cancelled']
WebhookHeaders = Optional[Dict[str, Optional[str]]]
Id = str
Timestamp = str
NullableTimestamp = Optional[str]
JobType = str
JobTypeCode = Literal['first_impression', 'general_qa', 'payment_flow', 'custom', 'ai_review', 'auth_flow', 'form_submission', 'mobile_responsive', 'full_user_story']
JobStatus = Literal['pending', 'claimed', 'completed', 'failed', 'cancelled']
Priority = Literal['normal', 'urgent']
PriorityInput = Optional[Literal['normal', 'urgent']]
SlaMinutes = Literal[15, 30, 60]
Severity = Literal['critical', 'major', 'minor']
SeverityInput = Optional[str]
ItemStatus = Literal['pass', 'fail', 'skip']
SkipReason = Optional[Literal['blocked', 'not_applicable', 'no_access', 'out_of_time']]
OverallStatus = Literal['pass', 'fail', 'inconclusive']
GeneratedBy = str
Count = int
Credits = int
CreditsExpired = int
PublicUrl = str
WebhookUrl = Optional[str]
WebhookSecret = Optional[str]
EventName = Literal['job.created', 'job.completed', 'job.ai_report_ready', 'job.session_ready', 'job.session_completed', 'loop_session.ended', 'job.question_asked', 'job.question_answered', 'account.webhook_disabled', 'account.credits_low']
EventNames = List["EventName"]
AccessInstructions = Optional[str]
TargetField = Optional[str]
NullableTarget = Optional[str]
Warnings = List["ErrorDetail"]

Webhook = Union[AccountCreditsLowEvent, AccountWebhookDisabledEvent, JobAiReportReadyEvent, JobCancelledEvent, JobClaimedEvent, JobCompletedEvent, JobCreatedEvent, JobFailedEvent, JobFailedSlaEvent, JobQuestionAnsweredEvent, JobQuestionAskedEvent, JobSessionCompletedEvent, JobSessionReadyEvent, LoopSessionEndedEvent, WebhookTestEvent]
