package modeltest

import (
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/oversight"
	"humanqa/domain/person"
	"humanqa/domain/pool"
	"humanqa/domain/project"
	"humanqa/domain/retention"
	"humanqa/domain/session"
	"humanqa/internal/testing/logtest"
)

// Rest appends what Everything and Hours leave out: accounts with their people, keys,
// checkers and pools, webhooks, questions, findings, holds, commit statuses and erasures.
func Rest(m *logtest.Memory) {
	for i := range 6 {
		r := rest{log: m, acc: fmt.Sprint("rest", i), n: i}
		r.account()
		r.people()
		r.checkers()
		r.project()
		r.questions()
		r.findings()
		r.commitStatuses()
		r.endings()
	}
}

// rest writes for the account of number n.
type rest struct {
	log *logtest.Memory
	acc string
	n   int
}

// Secrets appends jobs that show their secrets to one claimant, or to two.
func Secrets(m *logtest.Memory) {
	for i := range 6 {
		r := rest{log: m, acc: fmt.Sprint("secrets", i%2), n: i}
		stream := domain.JobStream(fmt.Sprint("secret", i))
		shown := func(kind string, claim int) *job.SecretShown {
			return &job.SecretShown{Kind: kind, Claim: claim, Checker: fmt.Sprint("7F3", claim), At: r.at(2)}
		}
		r.record(stream, 0, Created(r.acc, func(e *job.Created) { e.ProjectID, e.CreatedAt = r.id("shop"), r.at(0) }), Claimed("ann"),
			shown(job.SecretCredentials, 1), shown(job.SecretAccess, 1))
		if i%3 == 0 {
			r.record(stream, 3, &job.Released{Token: 1, Reason: "checker", At: r.at(3)}, Claimed("bob"), shown(job.SecretAnswer, 2))
		}
	}
}

// id is one of the account's.
func (r rest) id(kind string) string { return r.acc + "-" + kind }

// at is so many minutes past the account's own hour.
func (r rest) at(minutes int) time.Time { return *At(60*r.n + minutes) }

func (r rest) record(stream string, minutes int, events ...domain.Event) {
	r.log.RecordAs(domain.Metadata{AccountID: r.acc, Actor: "ada", Time: r.at(minutes)}, stream, events...)
}

func (r rest) account() {
	key := func(id string, scope account.Scope) *account.KeyIssued {
		expires := r.at(600)
		return &account.KeyIssued{
			Name: id, KeyID: r.id(id), Hash: "hash-" + r.id(id), Prefix: "qa_live_ab", Scope: scope, ExpiresAt: &expires,
		}
	}
	days := 30
	stream := domain.AccountStream(r.acc)
	r.record(stream, 0, &account.Created{Name: r.acc}, key("k1", account.ScopeFull), key("k2", account.ScopeRead),
		&account.KeyRevoked{KeyID: r.id("k1")}, &account.RetentionChanged{Keep: retention.Keep{EvidenceDays: &days}, At: r.at(1)},
		&account.HoldPlaced{HoldPlaced: r.hold()})
	lot := r.at(90)
	r.record(domain.CreditsStream(r.acc), 2, &credits.Granted{LotID: "l1", Amount: 50, ExpiresAt: &lot, BalanceAfter: 50},
		&credits.LowSet{Below: 20, BalanceAfter: 50},
		&credits.Debited{JobID: r.id("asked"), Amount: 5, Parts: []credits.Part{{LotID: "l1", Amount: 5}}, BalanceAfter: 45},
		&credits.LotExpired{LotID: "l1", Amount: 45, BalanceAfter: 0})
	if r.n%2 == 0 {
		r.record(stream, 3, &account.HoldReleased{HoldReleased: r.release()}, &account.Suspended{Reason: "unpaid"})
	}
	if r.n%4 == 0 {
		r.record(stream, 4, &account.Reinstated{})
	}
}

func (r rest) hold() retention.HoldPlaced {
	return retention.HoldPlaced{Reason: "a dispute", Operator: r.n%3 == 0, At: r.at(2)}
}

func (r rest) release() retention.HoldReleased {
	return retention.HoldReleased{Reason: "settled", At: r.at(3)}
}

func (r rest) people() {
	owner, viewer := domain.PersonStream(r.id("owner")), domain.PersonStream(r.id("viewer"))
	r.record(owner, 5, &person.Invited{Grant: person.Grant{Role: person.Owner, AccountID: r.acc}}, &person.Joined{})
	r.record(viewer, 6, &person.Invited{Grant: person.Grant{Role: person.Viewer, AccountID: r.acc}},
		&person.RoleGranted{Grant: person.Grant{Role: person.Developer, AccountID: r.acc}},
		&person.RoleGranted{Grant: person.Grant{Role: person.Checker, CheckerID: r.id("ann")}})
	switch r.n % 3 {
	case 0:
		r.record(viewer, 7, &person.Joined{}, &person.Disabled{Reason: "left"})
	case 1:
		r.record(viewer, 7, &person.RoleRevoked{Grant: person.Grant{Role: person.Developer, AccountID: r.acc}})
	}
	operator := domain.OperatorStream(r.id("owner"))
	r.record(operator, 8, &oversight.Acted{
		ActID: r.id("act1"), PersonID: r.id("owner"), Act: oversight.ChoosePool, Subject: domain.AccountStream(r.acc),
		AccountID: r.acc, Detail: r.id("pool"), Reason: "asked by the owner",
	}, &oversight.Acted{ActID: r.id("act2"), PersonID: r.id("owner"), Act: oversight.Rebuild, Subject: "jobs", Reason: "a try"},
		&oversight.Refused{ActID: r.id("act2"), Problem: "it runs already"})
}

func (r rest) checkers() {
	for _, name := range []string{"ann", "bob"} {
		stream := domain.CheckerStream(r.id(name))
		r.record(stream, 9, &checker.Created{Name: name, Hash: "hash-" + r.id(name), Prefix: "qc_ab"},
			&checker.Profiled{Languages: []string{"en"}, Devices: []string{"phone"}}, &checker.Profiled{Languages: []string{"en", "de"}})
		r.record(domain.PoolStream(r.id("pool")), 9, r.poolFor(name)...)
	}
	r.record(domain.AccountStream(r.acc), 10, &account.PoolChosen{PoolID: r.id("pool")})
	if r.n%2 == 1 {
		r.record(domain.AccountStream(r.acc), 11, &account.PoolChosen{})
		r.record(domain.PoolStream(r.id("pool")), 11, &pool.CheckerRemoved{CheckerID: r.id("ann")})
		r.record(domain.CheckerStream(r.id("bob")), 11, &checker.Erased{By: "ada", Reason: "asked for it", At: r.at(11)})
	}
}

// poolFor adds the checker to the pool, which the first one makes.
func (r rest) poolFor(name string) []domain.Event {
	added := &pool.CheckerAdded{CheckerID: r.id(name)}
	if name == "ann" {
		return []domain.Event{&pool.Created{Name: "own", AccountID: r.acc}, added}
	}
	return []domain.Event{added}
}

func (r rest) project() {
	stream, owner, until := domain.ProjectStream(r.id("shop")), r.id("owner"), r.at(1440)
	r.record(stream, 12, &project.Created{AccountID: r.acc, Name: "shop", HookHash: r.id("h1"), At: r.at(12)},
		&project.HookRotated{HookID: "2", HookHash: r.id("h2"), At: r.at(13), UserID: &owner},
		&project.HookSignatureSet{HookSignature: project.HookSignature{Scheme: "github", Sealed: "sealed"}, ChangeID: "1", At: r.at(13)},
		&project.WebhookSet{URL: "https://hooks.example/in", Events: &[]string{"job.completed"}, At: r.at(14)},
		&project.SecretSet{SecretID: "s1", Sealed: "sealed-1", Fingerprint: "f1", At: r.at(14)},
		&project.SecretSet{SecretID: "s2", Sealed: "sealed-2", Fingerprint: "f2", At: r.at(15), UserID: &owner, Rotated: true, PreviousUntil: &until},
		&project.WebhookHeadersSet{
			Headers: []project.OwnHeader{{Name: "X-Team", Sealed: "sealed-3", Fingerprint: "f3"}},
			Origin:  "https://hooks.example", At: r.at(16), UserID: &owner,
		},
		&project.HoldPlaced{HoldPlaced: r.hold()})
	switch r.n % 3 {
	case 0:
		r.record(stream, 17, &project.RotationFinished{At: r.at(17), UserID: &owner}, &project.HoldReleased{HoldReleased: r.release()})
	case 1:
		r.record(stream, 17, &project.WebhookDisabled{Reason: "answered 500", At: r.at(17)}, &project.WebhookEnabled{At: r.at(18)})
	case 2:
		r.record(stream, 17, &project.WebhookCleared{At: r.at(17)})
	}
}

// questions are three of one job: answered, too late, and open when the claim ends.
func (r rest) questions() {
	stream := domain.JobStream(r.id("asked"))
	asked := func(id string, minutes int) *job.QuestionAsked {
		return &job.QuestionAsked{
			QuestionID: id, Token: 1, ItemID: "i1", Kind: "code", Text: "which code?", Until: r.at(minutes + 30), At: r.at(minutes),
		}
	}
	r.record(stream, 20, Created(r.acc, func(e *job.Created) { e.ProjectID, e.CreatedAt = r.id("shop"), r.at(20) }), Claimed(r.id("ann")),
		asked("q1", 21), &job.AnswerGiven{QuestionID: "q1", AnswerID: "1", Text: "1234", Sealed: "sealed", DueAt: r.at(100), At: r.at(22)},
		asked("q2", 23), &job.QuestionClosed{QuestionID: "q2", Reason: job.QuestionUnanswered, DueAt: r.at(130), At: r.at(53)},
		&job.HoldPlaced{HoldPlaced: r.hold()})
	if r.n%2 == 0 {
		r.record(stream, 54, asked("q3", 54), &job.QuestionClosed{QuestionID: "q3", Reason: job.QuestionClaimEnded, DueAt: r.at(130), At: r.at(55)},
			&job.Released{Token: 1, Reason: "checker", At: r.at(55)}, &job.HoldReleased{HoldReleased: r.release()})
	}
}

// findings are of a job that is recorded: one is edited, one withdrawn.
func (r rest) findings() {
	finding := func(id string) job.Item { return job.Item{ID: r.id(id), Description: "odd", Severity: job.Minor} }
	r.record(domain.JobStream(r.id("found")), 56, Created(r.acc, func(e *job.Created) { e.ProjectID, e.CreatedAt = r.id("shop"), r.at(56) }),
		Claimed(r.id("bob")), Recorded(r.id("film")), &job.MomentMarked{Moment: job.Moment{ID: r.id("m"), At: r.at(57)}, Token: 1},
		&job.FindingAdded{Item: finding("f1"), Status: job.ItemFail, Note: "odd"},
		&job.FindingAdded{Item: finding("f2"), Status: job.ItemFail},
		&job.FindingEdited{Item: finding("f1"), Status: job.ItemPass, Note: "fine"},
		&job.FindingWithdrawn{FindingID: r.id("f2"), At: r.at(58)})
}

// commitStatuses are of jobs with one verdict: told, given up, and still awaited.
func (r rest) commitStatuses() {
	jobs := []string{r.id("commit0"), r.id("commit1"), r.id("commit2")}
	for i, id := range jobs {
		stream := domain.JobStream(id)
		r.record(stream, 60+i, Created(r.acc, func(e *job.Created) { e.CreatedAt = r.at(60 + i) }), &job.CommitStatusRequested{
			CommitStatus: job.CommitStatus{
				Provider: job.GitHub, Repository: "shop/web", Commit: "c0ffee", Context: "humanqa", Ref: "main", FailOn: string(job.Major),
			}, Jobs: jobs, At: r.at(60 + i),
		})
		switch (r.n + i) % 3 {
		case 0:
			completed := Completed("pass")
			completed.CommitStatus = true
			r.record(stream, 65, &job.CommitStatusSet{State: job.CommitPending, At: r.at(64)}, Claimed(r.id("ann")), completed,
				&job.CommitStatusSet{State: job.CommitSuccess, At: r.at(65)})
		case 1:
			r.record(stream, 65, &job.Cancelled{Refund: 5, CommitStatus: true, At: r.at(65)},
				&job.CommitStatusAbandoned{Reason: "the code host answered 404", At: r.at(65)})
		}
	}
}

// endings are a job that was voided, one that was erased, a session that was cancelled,
// and an erased account.
func (r rest) endings() {
	r.record(domain.JobStream(r.id("voided")), 70, &job.Voided{AccountID: r.acc, At: r.at(70)})
	erased := domain.JobStream(r.id("erased"))
	r.record(erased, 71, Created(r.acc, func(e *job.Created) { e.ProjectID, e.CreatedAt = r.id("shop"), r.at(71) }),
		Claimed(r.id("ann")), Completed("fail"), &job.Erased{By: "ada", Reason: "asked for it", At: r.at(72)})
	id := r.id("session")
	Gather(r.log, id, func(e *session.Created) { e.AccountID, e.ProjectID, e.At = r.acc, r.id("shop"), r.at(73) })
	r.record(domain.SessionStream(id), 74, &session.Marked{ID: "m1", PersonID: r.id("owner"), Note: "here", At: r.at(74)},
		&session.Cancelled{Reason: "client", At: r.at(75)})
	if r.n%3 == 2 {
		r.record(domain.AccountStream(r.acc), 80, &account.Erased{By: "ada", Reason: "asked for it"})
	}
	if r.n == 5 {
		r.record(domain.AccountStream(r.acc), 81, &account.ErasureFinished{})
	}
}
