package httpapi

import (
	"context"
	"slices"
	"strings"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/projections/jobs"
	"humanqa/projections/people"
)

// What the pages for people share with the API (httpapi/ui): limits, and the
// reading and writing of what must be the same in both.

// Admit asks for a place among the caller's requests of the last minute.
// retryAfter, in seconds, is 0 when there is one.
func (a *API) Admit(ctx context.Context, caller string, limit int) (retryAfter int, err error) {
	q, err := a.limits.take(ctx, caller, limit)
	if err != nil || q.admitted {
		return 0, err
	}
	return max(1, q.reset), nil
}

// Address is where a connection comes from, as limits count it.
func Address(remote string) string { return address(remote) }

// Stop tells requests that wait for something to answer with what there is.
func (a *API) Stop() { a.stopping.begin() }

// HostedTestOf reads a hosted test of the account from what would be the body of
// POST /v1/hosted/test. It names what is wrong with it.
func (a *API) HostedTestOf(ctx context.Context, of people.Account, body []byte) (command.HostedTest, error) {
	var p problems
	in := a.readHostedTest(&request{}, parseObject(body, &p))
	return in, a.admittedOf(ctx, of, &p)
}

// CheckTarget refuses the test of a URL that the account may no longer test.
func (a *API) CheckTarget(ctx context.Context, of people.Account, j jobs.Job) error {
	var p problems
	object{problems: &p}.target("url", j.URL, j.Type)
	return a.admittedOf(ctx, of, &p)
}

func (a *API) admittedOf(ctx context.Context, of people.Account, p *problems) error {
	if err := a.admit(ctx, of.ID, of.Sandbox, p); err != nil {
		return err
	}
	for _, t := range p.targets {
		if t.private != nil { // a page shows what is wrong, but no hint
			p.add(t.path, "%s; %s", t.private, t.hint())
		}
	}
	return p.err()
}

// NewProjectOf reads what would be the body of POST /v1/projects.
func (a *API) NewProjectOf(ctx context.Context, of people.Account, body []byte) (command.CreateProject, error) {
	var p problems
	in := a.readNewProject(parseObject(body, &p))
	return in, a.admittedOf(ctx, of, &p)
}

// ProjectUpdateOf reads what would be the body of PATCH /v1/projects/:id.
func (a *API) ProjectUpdateOf(ctx context.Context, of people.Account, body []byte) (command.UpdateProject, error) {
	var p problems
	in := a.readProjectUpdate(parseObject(body, &p))
	return in, a.admittedOf(ctx, of, &p)
}

// FixesOf turns ids of items that failed in the project's last test into the
// fixes to verify.
func (a *API) FixesOf(ctx context.Context, accountID, projectID string, itemIDs []string) ([]command.PreparedFix, error) {
	return a.failedInLastTest(ctx, accountID, projectID, itemIDs)
}

// ReportFile writes the job's report in one of the formats of
// GET /v1/jobs/:id/report but JSON: junit, ctrf, md.
func (a *API) ReportFile(ctx context.Context, accountID string, j jobs.Job, format string) (content []byte, mediaType string, err error) {
	for _, f := range reportFormats {
		if !slices.Contains(f.names, format) || f.write == nil {
			continue
		}
		tested, err := a.readTested(ctx, accountID, j.Outline, nil, f)
		if err != nil {
			return nil, "", err
		}
		content, err := f.write(outcome{title: j.Title, jobs: []testedJob{tested}})
		return content, f.types[0] + "; charset=utf-8", err
	}
	return nil, "", domain.NotFound("format")
}

// EvidencePath gives the path, signed for a while, at which a reference to
// evidence of ours can be fetched; ok is false for any other link.
func (a *API) EvidencePath(ctx context.Context, accountID, stored string) (path string, ok bool, err error) {
	if !strings.HasPrefix(stored, evidencePath) {
		return "", false, nil
	}
	link, err := a.evidenceLink(ctx, accountID, stored)
	return strings.TrimPrefix(link, a.baseURL), true, err
}

// EvidenceLink is a link for what is kept (decisions, "Links in exports").
func (a *API) EvidenceLink(ctx context.Context, accountID, stored string) (string, error) {
	return a.lastingLink(ctx, accountID, stored)
}

// EvidenceID is the id of a reference to evidence of ours; empty for any other
// link.
func EvidenceID(stored string) string {
	id, _ := strings.CutPrefix(stored, evidencePath)
	if id == stored {
		return ""
	}
	return id
}
