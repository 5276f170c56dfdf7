package dashboard

import (
	"net/url"
	"strconv"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
)

// batchForm is the form, with the lists that are written so far.
func (d Deps) batchForm(r *ui.Request, fields url.Values) (submitView, error) {
	v, err := d.submitView(r, fields)
	v.Types = job.Types()
	if fields.Has("item") {
		v.Preview = &checklistView{Tests: batchTests(fields), Review: job.Type(fields.Get("type")).Automatic()}
	}
	return v, err
}

func (d Deps) newBatch(r *ui.Request) (ui.Answer, error) {
	fields, draft, err := d.begin(r, batchDraft)
	if err != nil {
		return ui.Answer{}, err
	}
	v, err := d.batchForm(r, fields)
	v.Draft = draft
	return ui.Show("newbatch", "New batch", v), err
}

// readBatch reads one test from each line. missing holds the places of the tests whose host
// has no address.
func (d Deps) readBatch(r *ui.Request) (in []command.SubmitJob, missing map[int]bool, err error) {
	var bodies []map[string]any
	for _, t := range batchTests(r.PostForm) {
		body := map[string]any{
			"url": t.Address, "title": t.Title, "description": t.What, "jobType": r.PostFormValue("type"),
		}
		for field, name := range map[string]string{"priority": "priority", "project": "projectId"} {
			if value := r.PostFormValue(field); value != "" {
				body[name] = value
			}
		}
		if len(t.Rows) > 0 && !job.Type(r.PostFormValue("type")).Automatic() {
			body["checklistItems"] = bodyOf(t.Rows)
		}
		bodies = append(bodies, body)
	}
	form := ui.Object(map[string]any{"name": r.PostFormValue("name"), "jobs": bodies})
	in, targets := input.Bulk(form, nil)
	if err := d.Limits.AdmittedForm(r.Context(), r.Account, form.Problems, targets...); err != nil {
		return in, nil, err
	}
	for i := range in {
		in[i].Source = "bulk"
	}
	if id := r.PostFormValue("project"); id != "" {
		if _, err := d.Reads.Projects.Get(r.Context(), r.Account.ID, id); err != nil {
			return in, nil, err
		}
	}
	missing = map[int]bool{}
	for _, w := range d.Limits.Unresolved(r.Context(), targets...) {
		if of := batchPath.FindStringSubmatch(w.Path); of != nil {
			n, _ := strconv.Atoi(of[1])
			missing[n] = true
		}
	}
	return in, missing, nil
}

func (d Deps) previewBatch(r *ui.Request) (ui.Answer, error) {
	in, missing, err := d.readBatch(r)
	return d.showBatch(r, in, missing, err, "")
}

// startBatch is POST /v1/jobs/bulk for people: all tests or none, for the cost that was
// shown.
func (d Deps) startBatch(r *ui.Request) (ui.Answer, error) {
	in, missing, err := d.readBatch(r)
	if err == nil && r.PostFormValue("cost") != strconv.FormatInt(int64(costOf(in)), 10) {
		return d.showBatch(r, in, missing, nil, "Nothing was charged yet. Check the tests and the cost, then start.")
	}
	var out command.SubmittedBatch
	if err == nil {
		out, err = d.Commands.SubmitBulk(r.Context(), r.Cause(), in)
	}
	if err != nil {
		return d.showBatch(r, in, missing, err, "")
	}
	if err := d.forget(r, batchDraft); err != nil {
		r.Log.WithError(err).Warn("the draft of a batch that was submitted stays")
	}
	return r.Done(out.Position, nil, "/dashboard/batches/"+out.BatchID)
}

func costOf(in []command.SubmitJob) (cost domain.Credits) {
	for _, one := range in {
		cost += one.Type.Price(one.Urgent)
	}
	return cost
}

func (d Deps) showBatch(
	r *ui.Request, in []command.SubmitJob, missing map[int]bool, wrong error, notice string,
) (ui.Answer, error) {
	v, err := d.batchForm(r, r.PostForm)
	if err != nil {
		return ui.Answer{}, err
	}
	tests := batchTests(r.PostForm)
	refused, err := correctable(wrong)
	if err != nil {
		return ui.Answer{}, err
	}
	nameTests(r, wrong, tests)
	v.Notice = notice
	if v.Preview != nil {
		v.Preview.Tests = tests
	}
	if refused == nil || refused == errNoCredits {
		if v.Preview, err = d.batchPreview(r, in, tests, v.Balance.Available); err != nil {
			return ui.Answer{}, err
		}
	}
	for i := range tests {
		tests[i].Unresolved = missing[i]
	}
	err = d.keep(r, batchDraft)
	return ui.Answer{Template: "newbatch", Title: "New batch", View: v, Refused: refused}, err
}

// batchPreview asks for a list for each test that has none, and sums up the cost.
func (d Deps) batchPreview(r *ui.Request, in []command.SubmitJob, tests []batchTest, has domain.Credits) (*checklistView, error) {
	leave, err := d.PastReads.Enter("previews", r.Account.ID)
	if err != nil {
		return nil, err
	}
	defer leave()
	drafts, err := d.Commands.PreviewBulk(r.Context(), r.Cause(), in)
	if err != nil {
		return nil, err
	}
	v := &checklistView{Tests: tests, Review: in[0].Type.Automatic(), Cost: costOf(in)}
	v.Left, v.Short = max(0, has-v.Cost), max(0, v.Cost-has)
	for i, draft := range drafts {
		tests[i].Rows = nil
		for n, item := range draft.Items {
			tests[i].Rows = append(tests[i].Rows, checklistRow{
				N: n + 1, Description: item.Description, Expected: item.ExpectedOutcome, Severity: item.Severity,
			})
		}
		if !v.Review {
			tests[i].Rows = blanks(tests[i].Rows)
		}
	}
	return v, nil
}
