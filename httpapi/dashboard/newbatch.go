package dashboard

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
)

type newBatchView struct {
	submitView
	Tests string // a test a line: its address, and what to test

	Preview *batchPreview
}

// batchPreview is what a batch would test and cost.
type batchPreview struct {
	Lines []batchDraftLine
	Cost  domain.Credits
	Left  domain.Credits
	Short domain.Credits
}

type batchDraftLine struct {
	Title, Host, What string
	Unresolved        bool
}

func (d Deps) batchForm(r *ui.Request, fields url.Values) (v newBatchView, err error) {
	v.Tests = fields.Get("tests")
	v.submitView, err = d.submitView(r, fields)
	v.Types = job.Types()
	return v, err
}

func (d Deps) newBatch(r *ui.Request) (ui.Answer, error) {
	fields, draft, err := d.begin(r, batchDraft)
	if err != nil {
		return ui.Answer{}, err
	}
	v, err := d.batchForm(r, fields)
	v.Draft = draft
	if err != nil {
		return ui.Answer{}, err
	}
	return ui.Show("newbatch", "New batch", v)
}

// titleLength is how much of a line becomes its test's title, in characters.
const titleLength = 120

// readBatch reads a test a line. missing are the places of those whose host has no
// address.
func (d Deps) readBatch(r *ui.Request) (in []command.SubmitJob, missing map[int]bool, err error) {
	var bodies []map[string]any
	for line := range strings.Lines(r.PostFormValue("tests")) {
		address, what, _ := strings.Cut(strings.Join(strings.Fields(line), " "), " ")
		if address == "" {
			continue
		}
		address = ui.Address(address)
		title := what
		if what == "" {
			title, what = "Test of "+hostOf(address), "Test the app as a whole."
		}
		if long := []rune(title); len(long) > titleLength {
			title = string(long[:titleLength-1]) + "…"
		}
		body := map[string]any{"url": address, "title": title, "description": what, "jobType": r.PostFormValue("type")}
		for field, name := range map[string]string{"priority": "priority", "project": "projectId"} {
			if value := r.PostFormValue(field); value != "" {
				body[name] = value
			}
		}
		bodies = append(bodies, body)
	}
	form := ui.Object(map[string]any{"jobs": bodies})
	in = input.Bulk(form, nil)
	if err := d.Limits.AdmittedForm(r.Context(), r.Account, form.Problems); err != nil {
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
	for _, w := range d.Limits.Unresolved(r.Context(), form.Problems) {
		if of := batchPath.FindStringSubmatch(w.Path); of != nil {
			n, _ := strconv.Atoi(of[1])
			missing[n] = true
		}
	}
	return in, missing, nil
}

var batchPath = regexp.MustCompile(`^jobs\[([0-9]+)\]\.(\w+)$`)

func (d Deps) previewBatch(r *ui.Request) (ui.Answer, error) {
	in, missing, err := d.readBatch(r)
	return d.showBatch(r, in, missing, err, "")
}

// startBatch is POST /v1/jobs/bulk for people: all tests or none, for the cost that was
// shown.
func (d Deps) startBatch(r *ui.Request) (ui.Answer, error) {
	if err := r.Open(); err != nil {
		return ui.Answer{}, err
	}
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
		cost += command.Price(one.Type, one.Urgent)
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
	names := []string{"jobs", "The list"}
	words := map[string]string{"url": "the address", "description": "what to test", "jobType": "the kind", "projectId": "the project"}
	for path := range wrongs(wrong) {
		if of := batchPath.FindStringSubmatch(path); of != nil {
			n, _ := strconv.Atoi(of[1])
			word := words[of[2]]
			if word == "" {
				word = of[2]
			}
			names = append(names, path, fmt.Sprintf("Test %d: %s", n+1, word))
		}
	}
	status, known := v.refused(wrong, names...)
	if !known {
		return ui.Answer{}, wrong
	}
	v.Notice = notice
	if wrong == nil || status == 402 {
		v.Preview = &batchPreview{Cost: costOf(in)}
		v.Preview.Left = max(0, v.Balance.Available-v.Preview.Cost)
		v.Preview.Short = max(0, v.Preview.Cost-v.Balance.Available)
		for i, one := range in {
			v.Preview.Lines = append(v.Preview.Lines, batchDraftLine{one.Title, hostOf(one.URL), one.Description, missing[i]})
		}
	}
	if err := d.keep(r, batchDraft); err != nil {
		return ui.Answer{}, err
	}
	return ui.Answer{Template: "newbatch", Title: "New batch", View: v, Status: status}, nil
}
