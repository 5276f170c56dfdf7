package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

// What the workbench shares with the checker's interface: the reading of what
// checkers say, the next of the queue, and evidence.

// CheckOf reads a verdict from what would be the body of
// PUT /v1/checker/jobs/:id/items/:itemId. The item's pictures are left as they are.
func (a *API) CheckOf(itemID string, body []byte) (command.CheckItem, error) {
	var p problems
	in := parseObject(body, &p).checkItem(itemID)
	in.KeepScreenshots = true
	return in, p.err()
}

func (o object) checkItem(itemID string) command.CheckItem {
	in := command.CheckItem{
		ItemID:   itemID,
		Status:   job.ItemStatus(o.verdict("status", job.ItemPass, job.ItemFail, job.ItemSkip, job.ItemPending)),
		Note:     o.optional("note", maxNote),
		Severity: o.severity(""),
		Reason:   o.oneOf("reason", "", job.SkipReasons()...),
	}
	o.skipReason(in.Status, in.Reason)
	return in
}

// FindingOf reads what would be the body of POST /v1/checker/jobs/:id/items.
func (a *API) FindingOf(body []byte) (command.AddFinding, error) {
	var p problems
	in := parseObject(body, &p).finding()
	return in, p.err()
}

func (o object) finding() command.AddFinding {
	return command.AddFinding{
		Key:         strings.TrimSpace(o.optional("key", maxItemKey)),
		Description: o.required("description", maxItemText),
		Status:      job.ItemStatus(o.verdict("status", job.ItemPass, job.ItemFail)),
		Note:        o.optional("note", maxNote),
		Severity:    o.severity(job.Major),
	}
}

// SummaryOf reads the summary from what would be the body of
// POST /v1/checker/jobs/:id/complete.
func (a *API) SummaryOf(body []byte) (string, error) {
	var p problems
	summary := parseObject(body, &p).summary()
	return summary, p.err()
}

// UntestableOf reads what would be the body of
// POST /v1/checker/jobs/:id/untestable.
func (a *API) UntestableOf(body []byte) (reason, note string, err error) {
	var p problems
	reason, note = parseObject(body, &p).untestable()
	return reason, note, p.err()
}

func (o object) untestable() (reason, note string) {
	return o.required("reason", maxItemText), o.optional("note", maxNote)
}

// ClaimNext has claim try the jobs of the checker's queue, the first one first,
// until it has one; found is false when there is none. A job that is gone is
// skipped: the read model nominates, the log decides.
func (a *API) ClaimNext(ctx context.Context, checkerID string, claim func(jobID string) error) (found bool, err error) {
	var gone []string
	for range claimAttempts {
		next, ok, errNext := a.reads.Jobs.NextForChecker(ctx, checkerID, gone)
		if errNext != nil || !ok {
			return false, errNext
		}
		if err = claim(next); err == nil || !jobGone(err) {
			return err == nil, err
		}
		gone = append(gone, next)
	}
	return false, err
}

// TakeEvidence takes the file in the request's form as evidence under the claim,
// and gives the reference to it that a verdict may hold.
func (a *API) TakeEvidence(w http.ResponseWriter, hr *http.Request, cause command.Cause, claim command.Claim) (stored string, err error) {
	body, err := a.spool.readBody(w, hr, caller{actor: cause.Actor, checkerID: claim.CheckerID})
	if err != nil {
		return "", err
	}
	defer body.close()
	r := &request{Request: hr, came: body}
	found, err := readPiece(r)
	var bad formError
	switch {
	case errors.As(err, &bad):
		return "", domain.Invalid(domain.Detail(bad))
	case err != nil:
		return "", err
	}
	e, err := a.collect(hr.Context(), r, cause, claim, found)
	if err != nil {
		return "", err
	}
	return evidencePath + e.ID, nil
}

// EvidenceFile serves a piece of the account's evidence to somebody who may see it,
// for as long as they look: a player asks for parts. NotFound where there is none.
func (a *API) EvidenceFile(ctx context.Context, accountID, stored string) (http.Handler, error) {
	e, err := a.pieceOf(ctx, accountID, stored)
	return a.serving(e, a.evidenceFile), err
}

// EvidencePicture serves a picture to somebody who may see it now, and perhaps not in a
// moment: no cache keeps it. NotFound where there is none, and for what is no picture.
func (a *API) EvidencePicture(ctx context.Context, accountID, stored string) (http.Handler, error) {
	e, err := a.pieceOf(ctx, accountID, stored)
	if err == nil && !strings.HasPrefix(e.ContentType, "image/") {
		err = domain.NotFound("picture")
	}
	return a.serving(e, func(r *request, e evidenceRow) (answer, error) {
		ans, err := a.evidenceFile(r, e)
		if err == nil {
			ans.header.Set("Cache-Control", "no-store")
		}
		return ans, err
	}), err
}

func (a *API) pieceOf(ctx context.Context, accountID, stored string) (evidenceRow, error) {
	e, found, err := a.evidence.get(ctx, EvidenceID(stored))
	if err == nil && (!found || e.AccountID != accountID) {
		err = domain.NotFound("evidence")
	}
	return e, err
}

func (a *API) serving(e evidenceRow, file func(*request, evidenceRow) (answer, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		r := &request{Request: hr, log: a.log}
		ans, err := file(r, e)
		if err != nil {
			ans = refuse(r, err)
		}
		if ans.stream != nil {
			ans.sendStream(r, w)
			return
		}
		ans.send(w)
	})
}

// DropEvidence takes the reference to a piece of the job away, and forgets the piece
// if that was the last one. Any other link is nobody's to forget.
func (a *API) DropEvidence(ctx context.Context, jobID, stored string, take func() (command.Hidden, error)) error {
	return a.evidence.drop(ctx, jobID, EvidenceID(stored), take)
}

// GiveEvidence runs a command that refers to the job's evidence, each of stored once;
// links that are not ours are passed over.
func (a *API) GiveEvidence(ctx context.Context, jobID string, stored []string, refer func() error) error {
	var ids []string
	for _, s := range stored {
		if id := EvidenceID(s); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return a.evidence.give(ctx, jobID, ids, refer)
}

// MarkOf reads the note on a moment that somebody marks in a session.
func (a *API) MarkOf(body []byte) (note string, err error) {
	var p problems
	note = strings.TrimSpace(parseObject(body, &p).optional("note", maxMark))
	return note, p.err()
}
