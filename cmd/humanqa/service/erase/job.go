package erase

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/evidence"
	"humanqa/internal/pgpool"
	"humanqa/internal/preferences"
	"humanqa/webhooks"
	"humanqa/webhooks/notices"
)

// Job is the erasure of one job (decisions, "Erasure of one subject"). Each step may be
// repeated: a run that was cut off is continued by the same command.
type Job struct {
	*Operator
	id       string
	of       command.ErasingJob
	checkers []string // that had a claim
	texts    map[string]bool
	needles  needles
	Plan     Plan
}

// Plan describes an erasure.
type Plan struct {
	JobID       string `json:"jobId"`
	AccountID   string `json:"accountId"`
	Open        bool   `json:"open"` // it ends first, with a refund
	KeyGone     bool   `json:"keyGone"`
	Events      int    `json:"events"`        // of the job with texts
	InClear     int    `json:"eventsInClear"` // of these: written before texts were sealed
	Texts       int    `json:"texts"`
	Files       int    `json:"files"` // pictures, recordings and parts of them
	FileBytes   int64  `json:"fileBytes"`
	Deliveries  int    `json:"deliveries"`
	ErasedAgain bool   `json:"erasedBefore"`
}

// NewJob looks at a job before its erasure.
func NewJob(ctx context.Context, o *Operator, jobID string) (*Job, error) {
	of, err := o.Commands.ErasingJob(ctx, jobID)
	if err != nil {
		return nil, err
	}
	j := &Job{Operator: o, id: jobID, of: of}
	j.Plan = Plan{JobID: jobID, AccountID: of.AccountID, Open: of.Open, ErasedAgain: of.Erased}
	return j, j.look(ctx)
}

const countDeliveriesSQL = `
SELECT count(*)
FROM webhooks.deliveries
WHERE ordering_key = $1`

// look reads the job's texts into memory: they are searched for afterwards.
func (j *Job) look(ctx context.Context) (err error) {
	j.texts = map[string]bool{}
	err = j.Log.ReadRaw(ctx, domain.JobStream(j.id), func(e eventstore.RawEvent) error { return j.see(ctx, e) })
	if err != nil {
		return err
	}
	j.Plan.Texts = len(j.texts)
	j.Plan.KeyGone = j.Plan.Texts == 0 && j.Plan.Events > 0
	j.needles = newNeedles(j.texts)
	if j.Plan.Files, j.Plan.FileBytes, err = evidence.Kept(ctx, j.DB, j.of.AccountID, j.id); err != nil {
		return err
	}
	j.Plan.Deliveries, err = pgpool.One[int](ctx, j.DB, "the deliveries of job "+j.id, countDeliveriesSQL, domain.JobStream(j.id))
	return err
}

func (j *Job) see(ctx context.Context, e eventstore.RawEvent) error {
	found := false
	eventstore.EachText(e.Type, e.Whole(), func(quoted []byte) {
		found = true
		var text string
		if json.Unmarshal(quoted, &text) == nil && text != domain.ErasedText {
			j.texts[text] = true
		}
	})
	if found {
		j.Plan.Events++
		if !eventstore.TextsSealed(e) {
			j.Plan.InClear++
		}
	}
	r, err := e.Decode()
	if err != nil {
		return err
	}
	switch r := r.Event.(type) {
	case *job.Claimed:
		if !slices.Contains(j.checkers, r.CheckerID) {
			j.checkers = append(j.checkers, r.CheckerID)
		}
	case *job.Created:
		for _, sealed := range []string{r.Credentials, r.AccessInstructions} {
			if err := j.seeSecret(ctx, sealed); err != nil {
				return err
			}
		}
	case *job.AnswerGiven:
		return j.seeSecret(ctx, r.Sealed)
	}
	return nil
}

// seeSecret adds the words of a secret, which the claimant saw, to the needles of the
// search.
func (j *Job) seeSecret(ctx context.Context, sealed string) error {
	if sealed == "" || sealed == domain.ErasedText {
		return nil
	}
	plain, err := j.Vault.Unseal(ctx, j.of.AccountID, domain.JobStream(j.id), sealed)
	if errors.Is(err, domain.ErrShredded) || errors.Is(err, domain.ErrUnsealable) {
		return nil // the account was erased
	}
	if err != nil {
		return err
	}
	var fields map[string]string
	if json.Unmarshal(plain, &fields) != nil {
		fields = map[string]string{"": string(plain)}
	}
	for _, text := range fields {
		j.texts[text] = true
	}
	return nil
}

// Search looks for the job's texts everywhere, and changes nothing.
func (j *Job) Search(ctx context.Context) (Searched, error) {
	return j.needles.search(ctx, j.Core, domain.JobStream(j.id), j.owns)
}

// owns gives the owner of a row. A row that names no other owner counts as the job's.
func (j *Job) owns(table string, row map[string]any) (of string, own bool) {
	name := func(column string) string { text, _ := row[column].(string); return text }
	if stream := name("stream"); stream != "" {
		return stream, stream == domain.JobStream(j.id)
	}
	if key := name("ordering_key"); key != "" {
		return key, key == domain.JobStream(j.id)
	}
	if id := name("job_id"); id != "" {
		return domain.JobStream(id), id == j.id
	}
	if table == "mail.notices" { // of another test with the same title, or of the account
		id, _, _ := strings.Cut(strings.TrimPrefix(name("path"), "/dashboard/jobs/"), "#")
		return domain.JobStream(id), id == j.id
	}
	if strings.HasSuffix(table, ".jobs") {
		return domain.JobStream(name("id")), name("id") == j.id
	}
	if id := name("project_id"); id != "" {
		delete(row, "queue") // fixes that the client prepared are the project's
		rest, _ := json.Marshal(row)
		return "project-" + id, j.needles.in(rest) && strings.Contains(string(rest), j.id)
	}
	if id := name("session_id"); id != "" {
		return "session-" + id, false
	}
	return "", true
}

// Run erases the job and proves it. The texts that are left are in Searched. The key
// stays as long as a table holds one of the texts, so that the next run can search for
// them again.
func (j *Job) Run(ctx context.Context) (out Searched, err error) {
	for _, step := range j.Steps() {
		if err := step(ctx); err != nil {
			return out, err
		}
	}
	if out, err = j.Search(ctx); err != nil || len(out.Left) > 0 {
		return out, err
	}
	if err := j.Vault.ShredSubject(ctx, domain.JobStream(j.id), j.of.AccountID); err != nil {
		return out, err
	}
	// An upload or a recording that was under way before is let in no more.
	if err := j.eraseFiles(ctx); err != nil {
		return out, err
	}
	return out, j.proveGone(ctx)
}

// Steps come before the key is destroyed. The fact comes first: from then on no text is added.
func (j *Job) Steps() []func(context.Context) error {
	return []func(context.Context) error{j.say, j.follow, j.eraseFiles, j.eraseAnswers, j.eraseDrafts}
}

func (j *Job) say(ctx context.Context) error {
	of, err := j.Commands.ErasingJob(ctx, j.id)
	switch {
	case err != nil:
		return err
	case of.Held && !of.Erased:
		return domain.Conflict("a hold keeps what job %s has", j.id).WithHint("end it first: humanqa evidence release")
	}
	_, err = j.Commands.EraseJob(ctx, service.OperatorCause(j.of.AccountID), j.id, j.by, j.reason)
	return err
}

// follow lets every consumer of the log see the erasure: it waits for the service, or
// does the service's work where that is stopped.
func (j *Job) follow(ctx context.Context) error {
	at, err := j.Log.Head(ctx)
	if err != nil {
		return err
	}
	return j.CatchUp(ctx, j.log, at, webhooks.NewSubscriber(j.DB, j.Log, j.Config.PagesURL()),
		notices.New(j.DB, j.Log, j.Config.Mail != nil))
}

func (j *Job) eraseFiles(ctx context.Context) error {
	return untilWritten(ctx, "job", func() (int, error) {
		_, underWay, err := evidence.Erase(ctx, j.DB, j.files, j.of.AccountID, j.id)
		return underWay, err
	})
}

func (j *Job) eraseAnswers(ctx context.Context) error {
	about := func(path string, body []byte) bool {
		return (strings.Contains(path, j.id) || bytes.Contains(body, []byte(j.id))) && j.needles.in(body)
	}
	return admit.EraseAnswersWith(ctx, j.DB, j.Vault, append(j.checkers, j.of.AccountID), about)
}

func (j *Job) eraseDrafts(ctx context.Context) error {
	return preferences.EraseDrafts(ctx, j.DB, j.of.AccountID, func(fields string) bool { return j.needles.in([]byte(fields)) })
}

// proveGone reads the job once more: no text opens, and no file is there.
func (j *Job) proveGone(ctx context.Context) error {
	err := j.Log.ReadRaw(ctx, domain.JobStream(j.id), func(e eventstore.RawEvent) error {
		if eventstore.TextsSealed(e) && j.needles.in(e.Whole()) {
			return fmt.Errorf("%s of job %s still opens", e.Type, j.id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch files, _, err := evidence.Kept(ctx, j.DB, j.of.AccountID, j.id); {
	case err != nil:
		return err
	case files > 0:
		return fmt.Errorf("%d files of job %s are still there", files, j.id)
	}
	return nil
}
