package command_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/loop"
)

// What the customers ask for.

func (w *world) drawTenant(t *rapid.T) tenant { return rapid.SampledFrom(w.tenants).Draw(t, "account") }

func (w *world) drawProject(t *rapid.T, a tenant) string {
	return rapid.SampledFrom(w.projects[a.id]).Draw(t, "project")
}

// drawJob draws a job of the account, now and then of the other one.
func (w *world) drawJob(t *rapid.T, a tenant) string {
	if rapid.IntRange(0, 9).Draw(t, "foreign") == 0 {
		return rapid.SampledFrom(w.jobOrder).Draw(t, "job")
	}
	own := slices.DeleteFunc(slices.Clone(w.jobOrder), func(id string) bool { return w.jobs[id].AccountID != a.id })
	if len(own) == 0 {
		return "no-such-job"
	}
	return rapid.SampledFrom(own).Draw(t, "job")
}

func (w *world) spendable(a tenant, i int) domain.Credits {
	return w.ledgers[a.id].Available(w.clock(i).Add(w.ahead[a.id]))
}

// remains says whether that is what the account has left.
func (w *world) remains(a tenant, i int, said domain.Credits) string {
	if is := w.spendable(a, i); is != said {
		return fmt.Sprintf("%d credits are left", is)
	}
	return ""
}

// submitted says whether the account has such a job, and has paid for it.
func (w *world) submitted(a tenant, jobID string, price domain.Credits) string {
	j := w.jobs[jobID]
	charged, paid := w.unclosed[a.id].Debit(jobID)
	switch {
	case !j.Exists || j.AccountID != a.id:
		return "there is no such job"
	case j.Price != price:
		return fmt.Sprintf("the job costs %d", j.Price)
	case !paid || charged.Amount != price:
		return fmt.Sprintf("the account was charged %d", charged.Amount)
	}
	return ""
}

// refunded says whether the job has ended without a report and was given back.
func (w *world) refunded(a tenant, jobID string) string {
	j := w.jobs[jobID]
	if j.Status != job.StatusCancelled && j.Status != job.StatusFailed && j.Status != job.StatusVoided {
		return fmt.Sprintf("job %s is %s", jobID, j.Status)
	}
	if d, charged := w.unclosed[a.id].Debit(jobID); charged && !d.Refunded {
		return "job " + jobID + " was not refunded"
	}
	return ""
}

func (w *world) drawSubmission(t *rapid.T, a tenant) command.SubmitJob {
	in := command.SubmitJob{
		Submission: job.Submission{
			URL: "https://shop.example/", Title: "Shop", Description: "Look", Type: job.GeneralQA, TypeEcho: "general_qa",
			Source: "api", SLAMinutes: rapid.SampledFrom([]int{0, 15, 60}).Draw(t, "sla"),
			Urgent: rapid.IntRange(0, 4).Draw(t, "urgent") == 0,
		}, Wait: rapid.Bool().Draw(t, "wait"),
	}
	if rapid.Bool().Draw(t, "of a project") {
		in.ProjectID = w.drawProject(t, a)
	}
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		in.Type, in.TypeEcho = job.AIReview, "AI Review"
	case 1:
		in.AccessInstructions = "ring twice"
	case 2, 3:
		in.Items = []command.NewItem{{Description: "loads", Severity: job.Major}, {Description: "pays", Severity: job.Critical}}
	}
	return in
}

func (w *world) submit(t *rapid.T) {
	a := w.drawTenant(t)
	in, c := w.drawSubmission(t, a), w.client(a)
	w.send(t, &order{
		name: "submit", once: true,
		do: func(s *command.Service) (any, error) { return s.SubmitJob(ctx(), c, in) },
		holds: func(answer any, i int) string {
			j := answer.(command.SubmittedJob)
			return cmp.Or(w.submitted(a, j.JobID, j.CreditsDeducted), w.remains(a, i, j.CreditsRemaining))
		},
	})
}

func (w *world) bulk(t *rapid.T) {
	a := w.drawTenant(t)
	var in []command.SubmitJob
	for range rapid.IntRange(1, 4).Draw(t, "jobs") {
		in = append(in, w.drawSubmission(t, a))
	}
	c := w.client(a)
	w.send(t, &order{
		name: "bulk", once: true,
		do: func(s *command.Service) (any, error) { return s.SubmitBulk(ctx(), c, in) },
		holds: func(answer any, i int) string {
			b := answer.(command.SubmittedBatch)
			var sum domain.Credits
			for _, id := range b.JobIDs {
				sum += w.jobs[id].Price
				if problem := w.submitted(a, id, w.jobs[id].Price); problem != "" {
					return problem
				}
			}
			if len(b.JobIDs) != len(in) || sum != b.CreditsDeducted {
				return fmt.Sprintf("%d jobs cost %d", len(b.JobIDs), sum)
			}
			return w.remains(a, i, b.CreditsRemaining)
		},
	})
}

func (w *world) drawTest(t *rapid.T) command.HostedTest {
	host := rapid.SampledFrom([]string{"shop.example", "desk.example"}).Draw(t, "host")
	in := command.HostedTest{Submission: job.Submission{URL: "https://" + host, Source: "hosted"}, Host: host}
	in.Feature = rapid.SampledFrom([]string{"", "sign in", "pay"}).Draw(t, "feature")
	switch rapid.IntRange(0, 5).Draw(t, "webhook") {
	case 0:
		in.Webhook = command.Webhook{URL: "https://hooks.example/a"}
	case 1:
		in.Webhook = command.Webhook{URL: "https://hooks.example/b", Secret: rapid.SampledFrom([]string{"one", "two"}).Draw(t, "secret")}
	}
	if rapid.IntRange(0, 5).Draw(t, "review") == 0 {
		in.Type, in.TypeEcho = job.AIReview, "AI Review"
	}
	return in
}

func (w *world) hosted(t *rapid.T) {
	a := w.drawTenant(t)
	w.test(t, a, w.drawTest(t))
}

// test submits a hosted test and names its job, if it is answered.
func (w *world) test(t *rapid.T, a tenant, in command.HostedTest) string {
	c := w.client(a)
	answer, _ := w.send(t, &order{
		name: "hosted test", once: true, refuses: []string{"loop_session.judged", "loop_session.ended"},
		do:    func(s *command.Service) (any, error) { return s.TestHosted(ctx(), c, in) },
		holds: func(answer any, i int) string { return w.hostedHolds(a, answer.(command.HostedJob), i) },
	})
	handle, _ := answer.(command.HostedJob)
	return handle.JobID
}

func (w *world) hostedHolds(a tenant, h command.HostedJob, i int) string {
	j := w.jobs[h.JobID]
	price := h.CreditsDeducted
	if h.Deduplicated {
		price = j.Price
	}
	regressions := len(j.Regressions)
	for _, item := range j.Items {
		if item.Origin != "" {
			regressions++
		}
	}
	switch {
	case j.ProjectID != h.ProjectID || j.Type != h.Type || w.sites[h.ProjectID].AccountID != a.id:
		return fmt.Sprintf("the job is a %s of project %s", j.Type, j.ProjectID)
	case regressions != h.RegressionItems:
		return fmt.Sprintf("the job's list repeats %d", regressions)
	}
	return cmp.Or(w.submitted(a, h.JobID, price), w.remains(a, i, h.CreditsRemaining))
}

// looped is an agent's test.
func (w *world) looped(t *rapid.T) {
	a := w.drawTenant(t)
	in := w.drawTest(t)
	in.Loop = &command.LoopStep{
		Skill: "fix-it", Iteration: rapid.IntRange(1, 3).Draw(t, "iteration"),
		MaxIterations: rapid.SampledFrom([]int{0, 2}).Draw(t, "most"),
	}
	w.test(t, a, in)
}

func (w *world) deploy(t *rapid.T) {
	a := w.drawTenant(t)
	p, c := w.drawProject(t, a), w.client(a)
	in := command.Deploy{Test: w.drawTest(t), Keys: []string{rapid.SampledFrom([]string{"commit:a", "commit:b"}).Draw(t, "key")}}
	if rapid.IntRange(0, 3).Draw(t, "named") == 0 {
		in.Keys = append(in.Keys, "key:x")
	}
	w.send(t, &order{
		name:  "deploy",
		do:    func(s *command.Service) (any, error) { return s.Deploy(ctx(), c, p, in) },
		holds: func(answer any, i int) string { return w.hostedHolds(a, answer.(command.HostedJob), i) },
	})
	w.orders = w.orders[:len(w.orders)-1] // a hook that is called again later is another deploy
}

func (w *world) prepare(t *rapid.T) {
	a := w.drawTenant(t)
	w.mend(t, a, w.drawProject(t, a))
}

func (w *world) mend(t *rapid.T, a tenant, p string) {
	c := w.client(a)
	var in []command.PreparedFix
	for range rapid.IntRange(1, 2).Draw(t, "fixes") {
		in = append(in, command.PreparedFix{Description: rapid.SampledFrom([]string{"loads", "pays", "signs in", "logs out"}).Draw(t, "fix")})
	}
	w.send(t, &order{
		name:  "prepare-next",
		do:    func(s *command.Service) (any, error) { return s.PrepareNext(ctx(), c, p, in) },
		holds: func(any, int) string { return "" },
	})
	w.orders = w.orders[:len(w.orders)-1] // fixes that were verified meanwhile would be queued again
}

func (w *world) openProject(t *rapid.T) {
	a := w.drawTenant(t)
	if len(w.projects[a.id]) > 3 {
		t.Skip("there are enough projects")
	}
	c, sla, url := w.client(a), 30, "https://desk.example"
	w.send(t, &order{
		name: "open a project", once: true,
		do: func(s *command.Service) (any, error) {
			p, err := s.CreateProject(ctx(), c, command.CreateProject{Name: "Desk", DefaultSLAMinutes: &sla, DefaultURL: &url})
			p.Position = domain.Position{}
			return p, err
		},
		holds: func(answer any, _ int) string {
			if w.sites[answer.(command.CreatedProject).ProjectID].AccountID != a.id {
				return "there is no such project"
			}
			return ""
		},
	})
}

func (w *world) grant(t *rapid.T) {
	a := w.drawTenant(t)
	amount := domain.Credits(rapid.IntRange(1, 30).Draw(t, "amount"))
	var expires *time.Time
	if rapid.IntRange(0, 2).Draw(t, "expires") > 0 {
		at := w.now.Add(w.ahead[a.id] + rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 48 * time.Hour}).Draw(t, "in"))
		expires = &at
	}
	c := w.operator()
	w.send(t, &order{
		name: "grant",
		once: true,
		do: func(s *command.Service) (any, error) {
			_, _, err := s.GrantCredits(ctx(), c, a.id, amount, expires, "")
			return true, err
		},
		holds: func(any, int) string { return "" },
	})
}

func (w *world) retest(t *rapid.T) {
	if len(w.jobOrder) == 0 {
		t.Skip("there is no job")
	}
	a := w.drawTenant(t)
	of, c := w.drawJob(t, a), w.client(a)
	w.send(t, &order{
		name: "retest", once: true,
		do: func(s *command.Service) (any, error) { return s.Retest(ctx(), c, of) },
		holds: func(answer any, i int) string {
			j := answer.(command.SubmittedJob)
			if w.jobs[of].AccountID != a.id || w.jobs[j.JobID].ParentID != of {
				return "it is another job's retest"
			}
			if (w.jobs[of].AccessInstructions == "") != (w.jobs[j.JobID].AccessInstructions == "") {
				return "the secrets are not the first test's"
			}
			return cmp.Or(w.submitted(a, j.JobID, j.CreditsDeducted), w.remains(a, i, j.CreditsRemaining))
		},
	})
}

func (w *world) cancel(t *rapid.T) {
	if len(w.jobOrder) == 0 {
		t.Skip("there is no job")
	}
	a := w.drawTenant(t)
	id, c := w.drawJob(t, a), w.client(a)
	w.send(t, &order{
		name: "cancel", once: true,
		do: func(s *command.Service) (any, error) { return s.CancelJob(ctx(), c, id, job.CancelClient) },
		holds: func(answer any, i int) string {
			j := answer.(command.EndedJob)
			if w.jobs[id].AccountID != a.id || w.jobs[id].Status != job.StatusCancelled || w.jobs[id].Price != j.CreditsRefunded+j.CreditsExpired {
				return fmt.Sprintf("the job is %s and was %d", w.jobs[id].Status, w.jobs[id].Price)
			}
			return cmp.Or(w.refunded(a, id), w.remains(a, i, j.CreditsRemaining))
		},
	})
}

// archive puts a project away, which is rare, or restores it.
func (w *world) archive(t *rapid.T) {
	a := w.drawTenant(t)
	id, c := w.drawProject(t, a), w.client(a)
	put := rapid.IntRange(0, 3).Draw(t, "archive") == 0
	w.send(t, &order{
		name: "archive",
		do: func(s *command.Service) (any, error) {
			_, _, err := s.ArchiveProject(ctx(), c, id, put, command.CancelledAtOnce)
			return put, err
		},
		holds: func(any, int) string {
			if archived := w.sites[id].ArchivedAt != nil; archived != put {
				return fmt.Sprintf("it is archived: %t", archived)
			}
			return ""
		},
	})
}

// fail is the operator's word, which is rare.
func (w *world) fail(t *rapid.T) {
	if len(w.jobOrder) == 0 {
		t.Skip("there is no job")
	}
	if rapid.IntRange(0, 2).Draw(t, "fail") > 0 {
		return
	}
	a := w.drawTenant(t)
	id, c := w.drawJob(t, a), w.client(a)
	w.send(t, &order{
		name: "fail", once: true,
		do: func(s *command.Service) (any, error) {
			return s.FailJob(ctx(), c, id, job.FailOperator)
		},
		holds: func(answer any, i int) string {
			if w.jobs[id].AccountID != a.id || w.jobs[id].Status != job.StatusFailed {
				return fmt.Sprintf("the job is %s", w.jobs[id].Status)
			}
			return cmp.Or(w.refunded(a, id), w.remains(a, i, answer.(command.EndedJob).CreditsRemaining))
		},
	})
}

func (w *world) rate(t *rapid.T) {
	if len(w.completed) == 0 {
		t.Skip("nothing is completed")
	}
	id := rapid.SampledFrom(w.completed).Draw(t, "job")
	a := w.drawTenant(t)
	c, rating := w.client(a), rapid.IntRange(1, 5).Draw(t, "rating")
	if _, err := w.call(t, &order{
		name: "rate",
		do: func(s *command.Service) (any, error) {
			_, err := s.RateJob(ctx(), c, id, rating, "")
			return rating, err
		},
		holds: func(any, int) string {
			if r := w.jobs[id].Rating; w.jobs[id].AccountID != a.id || r == nil || r.Rating != rating {
				return "the job has another rating"
			}
			return ""
		},
	}, w.drawService(t), nil); err == nil && w.jobs[id].Type.Automatic() {
		t.Fatalf("the review %s is rated", id)
	}
}

func (w *world) finalize(t *rapid.T) {
	if len(w.loopOrder) == 0 {
		t.Skip("there is no loop")
	}
	id := rapid.SampledFrom(w.loopOrder).Draw(t, "loop")
	a := w.drawTenant(t)
	c, of := w.client(a), w.loops[id].Session.ID
	w.send(t, &order{
		name: "finalize", once: true,
		do: func(s *command.Service) (any, error) {
			_, err := s.FinalizeLoop(ctx(), c, id, of, loop.StatusPassed)
			return true, err
		},
		holds: func(any, int) string {
			if l := w.loops[id]; l.Session.AccountID != a.id || l.Ends[of] != loop.StatusPassed {
				return fmt.Sprintf("the loop is %s", l.Ends[of])
			}
			return ""
		},
	})
}

// drawReport draws a completed job.
func (w *world) drawReport(t *rapid.T) (id string, st job.State) {
	if len(w.completed) == 0 {
		t.Skip("nothing is completed")
	}
	id = rapid.SampledFrom(w.completed).Draw(t, "job")
	return id, w.jobs[id]
}

func (w *world) dispute(t *rapid.T) {
	id, st := w.drawReport(t)
	item := rapid.SampledFrom(st.Report.Items).Draw(t, "item").ID
	a := w.drawTenant(t)
	c := w.client(a)
	_, _ = w.call(t, &order{
		name: "dispute",
		do: func(s *command.Service) (any, error) {
			d, _, err := s.DisputeVerdict(ctx(), c, id, item, "No.")
			return d, err
		},
		holds: func(answer any, _ int) string {
			if d := w.jobs[id].Dispute(answer.(*job.Dispute).DisputeID); d == nil || d.ItemID != item || w.jobs[id].AccountID != a.id {
				return "the verdict is not disputed"
			}
			return ""
		},
	}, w.drawService(t), nil)
}

func (w *world) rule(t *rapid.T) {
	id, st := w.drawReport(t)
	if len(st.Disputes) == 0 {
		t.Skip("nothing is disputed")
	}
	of, ruling := rapid.SampledFrom(st.Disputes).Draw(t, "dispute").DisputeID, rapid.SampledFrom(job.Rulings()).Draw(t, "ruling")
	c := w.client(w.drawTenant(t))
	_, _ = w.call(t, &order{
		name: "rule",
		do:   func(s *command.Service) (any, error) { return s.RuleDispute(ctx(), c, id, of, ruling) },
		holds: func(any, int) string {
			if decided := w.jobs[id].Dispute(of).Decision(); decided != ruling {
				return "the decision is " + string(decided)
			}
			return ""
		},
	}, w.drawService(t), nil)
}
