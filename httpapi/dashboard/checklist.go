package dashboard

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	"humanqa/projections/history"
)

// checklistFields are the fields of the checklist's editor: the same place in each of the
// three lists makes a row.
var checklistFields = []string{"item", "expected", "severity"}

// blankRows is the number of empty rows at the end of the editor, for further items.
const blankRows = 3

// checklistView shows the items of a test, or of the tests of a batch, and the cost before
// anything is charged.
type checklistView struct {
	Type        string
	ProjectID   string // empty: a project of its own is made
	ProjectName string
	Again       []job.Item            // items that failed before: the service adds them
	Since       map[string]*time.Time // they began to fail, by their keys; an item that passes now has none
	Rows        []checklistRow
	Tests       []batchTest    // of a batch
	By          string         // author of the rows; empty: the person
	Review      bool           // the AI tests the page by its own list
	Checkers    int            // 0: it is no session
	Cost, Left  domain.Credits // a cost of 0 is not known yet
	Short       domain.Credits // the credits that are missing
	Minutes     int
}

// Items is the number of items in the list.
func (v checklistView) Items() int {
	return len(v.Again) + len(slices.DeleteFunc(slices.Clone(v.Rows), checklistRow.blank))
}

type checklistRow struct {
	N                     int // from 1
	Description, Expected string
	Severity              job.Severity
}

// blank says that the row has no description. Such a row is left out.
func (c checklistRow) blank() bool { return c.Description == "" }

// rowsOf reads the editor's rows, without those that are empty.
func rowsOf(fields url.Values) (rows []checklistRow) {
	for _, row := range allRowsOf(fields) {
		if !row.blank() {
			row.N = len(rows) + 1
			rows = append(rows, row)
		}
	}
	return rows
}

// allRowsOf reads the editor's rows in their places.
func allRowsOf(fields url.Values) (rows []checklistRow) {
	at := func(name string, i int) string {
		if values := fields[name]; i < len(values) {
			return strings.TrimSpace(values[i])
		}
		return ""
	}
	for i := range fields["item"] {
		rows = append(rows, checklistRow{
			N: i + 1, Description: at("item", i), Expected: at("expected", i), Severity: job.Severity(at("severity", i)),
		})
	}
	return rows
}

// takeOver puts the list of the test that the request names in place of the form's own.
// Findings of its checker are no part of the list.
func (d Deps) takeOver(r *ui.Request, fields url.Values) error {
	id := r.FormValue("checklist")
	if id == "" {
		return nil
	}
	other, err := d.Reads.Jobs.Job(r.Context(), r.Account.ID, id)
	switch {
	case err != nil:
		return err
	case other.ErasedAt != nil:
		return domain.Conflict("the texts of the test were erased").WithHint("use the checklist of another test")
	}
	for _, field := range checklistFields {
		fields.Del(field)
	}
	for _, item := range other.Items {
		if !item.IsFinding() {
			fields.Add("item", item.Description)
			fields.Add("expected", item.ExpectedOutcome)
			fields.Add("severity", string(item.Severity))
		}
	}
	return nil
}

// othersOffered bounds the lists that a form offers.
const othersOffered = 5

// offerOthers reads the lists of the project's other tests, once the project is known.
func (d Deps) offerOthers(r *ui.Request, v *submitView) (err error) {
	projectID := v.Fields.Get("project")
	if v.Preview != nil {
		projectID = cmp.Or(v.Preview.ProjectID, projectID)
	}
	if projectID != "" {
		v.Others, err = d.Reads.Jobs.Checklists(r.Context(), r.Account.ID, projectID, othersOffered)
	}
	return err
}

// bodyOf gives the rows as a request to the API holds them.
func bodyOf(rows []checklistRow) (items []map[string]any) {
	for _, row := range rows {
		items = append(items, map[string]any{
			"description": row.Description, "expectedOutcome": row.Expected, "severity": string(row.Severity),
		})
	}
	return items
}

// itemsOf reads the person's own checklist; without items, the service writes one.
func itemsOf(fields url.Values) ([]command.NewItem, error) {
	form := ui.Object(map[string]any{"checklistItems": bodyOf(rowsOf(fields))})
	items := input.Checklist(form)
	return items, form.Problems.Err()
}

var itemPath = regexp.MustCompile(`^checklistItems\[([0-9]+)\]\.(description|expectedOutcome|severity)$`)

// both joins the errors of a form with those of its items, so that a person sees all of
// them at once.
func both(form, items error) error {
	inForm, inItems := ui.Wrongs(form), ui.Wrongs(items)
	if inForm == nil || inItems == nil {
		return cmp.Or(form, items)
	}
	var all []domain.Detail
	for _, wrong := range []map[string]string{inForm, inItems} {
		for path, message := range wrong {
			all = append(all, domain.Detail{Path: path, Message: message})
		}
	}
	return domain.Invalid(all...)
}

// itemFields are the fields of a row, by the API's names.
var itemFields = map[string]string{"description": "item", "expectedOutcome": "expected", "severity": "severity"}

// nameItems names the fields of the items that are wrong, in the rows as they are shown again.
func nameItems(r *ui.Request, wrong error) {
	for path := range ui.Wrongs(wrong) {
		if of := itemPath.FindStringSubmatch(path); of != nil {
			n, _ := strconv.Atoi(of[1])
			r.Named(path, fmt.Sprintf("%s-%d", itemFields[of[2]], n+1))
		}
	}
}

// preview shows the items of the test and its cost for the number of checkers; 0: it is no
// session. A quota bounds the previews at a time, since each may ask the model for a list.
func (d Deps) preview(r *ui.Request, in command.HostedTest, checkers int) (*checklistView, error) {
	leave, err := d.PastReads.Enter("previews", r.Account.ID)
	if err != nil {
		return nil, err
	}
	defer leave()
	p, err := d.Commands.PreviewTest(r.Context(), r.Cause(), in)
	if err != nil {
		return nil, err
	}
	v := &checklistView{
		Type: p.Type.Title(), ProjectID: p.ProjectID, ProjectName: p.ProjectName, By: p.GeneratedBy, Review: p.Type.Automatic(),
		Checkers: checkers, Cost: p.Price * domain.Credits(max(1, checkers)), Minutes: p.EstimatedMinutes,
	}
	v.Left = max(0, p.CreditsAvailable-v.Cost)
	v.Short = max(0, v.Cost-p.CreditsAvailable)
	open, err := d.Reads.History.Open(r.Context(), r.Account.ID, p.ProjectID, history.FailuresCounted)
	if err != nil {
		return nil, err
	}
	v.Since = map[string]*time.Time{}
	for i := range open {
		v.Since[open[i].Key] = &open[i].FirstFailedAt
	}
	for _, item := range p.Items {
		if item.Origin != "" {
			v.Again = append(v.Again, item)
			continue
		}
		if slices.ContainsFunc(v.Again, func(again job.Item) bool { return again.Description == item.Description }) {
			continue // one of another key, such as of a list that was taken over
		}
		v.Rows = append(v.Rows, checklistRow{
			N: len(v.Rows) + 1, Description: item.Description, Expected: item.ExpectedOutcome, Severity: item.Severity,
		})
	}
	if !v.Review {
		v.Rows = blanks(v.Rows)
	}
	return v, nil
}

// changed says that the cost is not the one that the person was shown.
func (v *checklistView) changed(r *ui.Request) bool {
	shown := r.PostFormValue("cost")
	return shown != "" && shown != strconv.FormatInt(int64(v.Cost), 10)
}
