package httpapi

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/internal/vault"
	"humanqa/projections/jobs"
)

const (
	// evidencePath starts the path of every piece. Path and id are what events
	// hold of it: they stay true when the service moves to another host, and say
	// nothing without a signature.
	evidencePath = "/v1/evidence/"
	// linkValid is how long a link works from the answer that shows it.
	linkValid = 15 * time.Minute
	// lasting is the expiry of a link that does not expire.
	lasting = ""
)

// signature is what makes a link to the account's evidence valid until then: a
// time in seconds, or lasting. It is keyed by the account: shredding its key
// ends all its links.
func (a *API) signature(ctx context.Context, accountID, id, expires string) (string, error) {
	return a.vault.Fingerprint(ctx, accountID, "evidence link", []byte(id+"\n"+expires))
}

// evidenceLink gives what an answer shows of a stored link: a fresh signed one
// if it refers to evidence, anybody else's as it is.
func (a *API) evidenceLink(ctx context.Context, accountID, stored string) (string, error) {
	return a.linkUntil(ctx, accountID, stored, strconv.FormatInt(a.now().Add(linkValid).Unix(), 10))
}

// lastingLink is evidenceLink for what is kept, as a report in a repository is
// (decisions, "Links in exports").
func (a *API) lastingLink(ctx context.Context, accountID, stored string) (string, error) {
	return a.linkUntil(ctx, accountID, stored, lasting)
}

func (a *API) linkUntil(ctx context.Context, accountID, stored, expires string) (string, error) {
	id, ours := strings.CutPrefix(stored, evidencePath)
	if !ours {
		return stored, nil
	}
	signature, err := a.signature(ctx, accountID, id, expires)
	switch {
	case errors.Is(err, vault.ErrShredded):
		return "", nil // it was erased with its account
	case err != nil:
		return "", err
	}
	query := url.Values{"signature": {signature}}
	if expires != lasting {
		query.Set("expires", expires)
	}
	return a.baseURL + evidencePath + id + "?" + query.Encode(), nil
}

// linkReport makes the report's references links that work.
func linkReport(report *jobs.Report, link func(stored string) (string, error)) (err error) {
	if report.RecordingURL, err = link(report.RecordingURL); err != nil {
		return err
	}
	for i := range report.Recordings {
		if report.Recordings[i].URL, err = link(report.Recordings[i].URL); err != nil {
			return err
		}
	}
	for i := range report.Items {
		if err := linkItem(&report.Items[i], link); err != nil {
			return err
		}
	}
	return nil
}

func linkItem(item *job.ReportItem, link func(stored string) (string, error)) (err error) {
	if item.ScreenshotURL, err = link(item.ScreenshotURL); err != nil {
		return err
	}
	more := make([]string, len(item.MoreScreenshotURLs)) // the item's own list is its owner's
	for i, stored := range item.MoreScreenshotURLs {
		if more[i], err = link(stored); err != nil {
			return err
		}
	}
	if len(more) > 0 {
		item.MoreScreenshotURLs = more
	}
	return nil
}

// signed says whether the link's query is a valid signature for the evidence: a
// wrong one makes it a link to nothing, an old one may be asked for again.
func (a *API) signed(r *request, e evidenceRow) error {
	query := r.URL.Query()
	raw := query.Get("expires")
	expires, err := strconv.ParseInt(raw, 10, 64)
	if raw != lasting && (err != nil || strconv.FormatInt(expires, 10) != raw) {
		return errNoEvidence
	}
	want, err := a.signature(r.Context(), e.AccountID, e.ID, raw)
	switch {
	case errors.Is(err, vault.ErrShredded):
		return errNoEvidence
	case err != nil:
		return err
	case subtle.ConstantTimeCompare([]byte(want), []byte(query.Get("signature"))) != 1:
		return errNoEvidence
	case raw != lasting && a.now().Unix() >= expires:
		return domain.Forbidden("the link has expired").WithHint("read the report again: it has fresh links")
	}
	return nil
}

var errNoEvidence = domain.NotFound("evidence").WithHint("use a link as an answer shows it, with its whole query")

// refer turns a link that a claimant sends into what is stored: for evidence of
// ours its path, whether or not the link still works, and only if it belongs to
// the job; any other link stays as it is. owner is the account whose evidence
// it is.
func (a *API) refer(r *request, o object, field string, link *string) (owner string, err error) {
	id, ours := a.evidenceID(*link)
	if !ours {
		return "", nil
	}
	e, found, err := a.evidence.get(r.Context(), id)
	switch {
	case err != nil:
		return "", err
	case !found || e.JobID != r.vars["id"]:
		o.wrong(field, "is no evidence of this job: upload the file first")
		return "", nil
	}
	*link = evidencePath + id
	return e.AccountID, nil
}

// evidenceID tells a link to evidence of ours by where our links begin. A link
// that means the same in other words is a stranger's: it is shown as it came,
// and never signed.
func (a *API) evidenceID(link string) (id string, ours bool) {
	rest, ours := strings.CutPrefix(link, a.baseURL+evidencePath)
	if end := strings.IndexAny(rest, "?#"); end >= 0 {
		rest = rest[:end]
	}
	return rest, ours
}
