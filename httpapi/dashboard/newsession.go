package dashboard

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
)

type newSessionView struct {
	submitView
	URL, Feature, Brief, Access string
	Silent                      bool // no voice
	Checkers                    int
	Counts                      []int
	Slots                       []slotForm
}

// slotForm is one checker of a session that is being written.
type slotForm struct {
	N                     int // from 1
	Role, Device, Browser string
}

func (d Deps) sessionForm(r *ui.Request, fields url.Values) (v newSessionView, err error) {
	v = newSessionView{
		URL: fields.Get("url"), Feature: fields.Get("feature"), Brief: fields.Get("brief"), Access: fields.Get("access"),
		Silent: fields.Get("silent") != "", Checkers: checkersOf(fields),
	}
	at := func(name string, i int) string {
		if values := fields[name]; i < len(values) {
			return values[i]
		}
		return ""
	}
	for n := range session.MaxSlots {
		v.Slots = append(v.Slots, slotForm{N: n + 1, Role: at("role", n), Device: at("device", n), Browser: at("browser", n)})
		if n+1 >= session.MinSlots {
			v.Counts = append(v.Counts, n+1)
		}
	}
	v.submitView, err = d.submitView(r, fields)
	v.Types = slices.DeleteFunc(v.Types, job.Type.Automatic) // no checkers meet for these
	return v, err
}

// checkersOf is the number of checkers that the form asks for.
func checkersOf(fields url.Values) int {
	n, err := strconv.Atoi(fields.Get("checkers"))
	if err != nil {
		return session.MinSlots
	}
	return min(max(n, session.MinSlots), session.MaxSlots)
}

func (d Deps) newSession(r *ui.Request) (ui.Answer, error) {
	fields, draft, err := d.begin(r, sessionDraft)
	if err != nil {
		return ui.Answer{}, err
	}
	v, err := d.sessionForm(r, fields)
	if err != nil {
		return ui.Answer{}, err
	}
	v.Draft = draft
	if rows := rowsOf(fields); len(rows) > 0 {
		v.Preview = &checklistView{Rows: rows}
	}
	return ui.Show("newsession", "New session", v), nil
}

// readSession reads the form of a session; warned is as in readTest.
func (d Deps) readSession(r *ui.Request) (in command.NewSession, warned bool, err error) {
	r.Addresses("url")
	body := map[string]any{"voiceEnabled": r.PostFormValue("silent") == ""}
	for field, name := range map[string]string{
		"url": "url", "feature": "feature", "type": "jobType", "priority": "priority", "access": "accessInstructions",
		"brief": "scenarioBrief",
	} {
		if text := strings.TrimSpace(r.PostFormValue(field)); text != "" {
			body[name] = text
		}
	}
	v, err := d.sessionForm(r, r.PostForm)
	if err != nil {
		return in, false, err
	}
	var slots []map[string]any
	for _, slot := range v.Slots[:v.Checkers] {
		slots = append(slots, map[string]any{"roleLabel": slot.Role, "targetDevice": slot.Device, "targetBrowser": slot.Browser})
	}
	body["slots"] = slots
	form := ui.Object(body)
	in, target := input.Session(form, d.Limits)
	in.Test.Items, err = itemsOf(r.PostForm)
	if err := both(d.Limits.AdmittedForm(r.Context(), r.Account, form.Problems, target), err); err != nil {
		return in, false, err
	}
	return in, len(d.Limits.Unresolved(r.Context(), target)) > 0, nil
}

func (d Deps) previewSession(r *ui.Request) (ui.Answer, error) {
	if r.PostFormValue("rewrite") != "" {
		for _, field := range checklistFields {
			r.PostForm.Del(field)
		}
	}
	in, warned, err := d.readSession(r)
	return d.showSession(r, in, warned, err, "")
}

// startSession is POST /v1/hosted/sessions for people. It charges no other cost than the
// one that was shown.
func (d Deps) startSession(r *ui.Request) (ui.Answer, error) {
	in, warned, err := d.readSession(r)
	if err == nil && warned && r.PostFormValue("unresolved") != in.Test.URL {
		return d.showSession(r, in, true, nil, "")
	}
	if err == nil {
		p, err := d.preview(r, in.Test, len(in.Slots))
		switch {
		case err != nil:
			return ui.Answer{}, err
		case r.PostFormValue("cost") == "":
			return d.showSession(r, in, warned, nil, "Nothing was charged yet. Check the cost, then start.")
		case p.changed(r):
			return d.showSession(r, in, warned, nil, costChanged)
		}
	}
	var out command.CreatedSession
	if err == nil {
		out, err = d.Commands.CreateSession(r.Context(), r.Cause(), in)
	}
	if err != nil {
		return d.showSession(r, in, false, err, "")
	}
	if err := d.forget(r, sessionDraft); err != nil {
		r.Log.WithError(err).Warn("the draft of a session that was started stays")
	}
	return r.Done(out.Position, nil, "/dashboard/sessions/"+out.SessionID)
}

func (d Deps) showSession(r *ui.Request, in command.NewSession, warned bool, wrong error, notice string) (ui.Answer, error) {
	v, err := d.sessionForm(r, r.PostForm)
	if err != nil {
		return ui.Answer{}, err
	}
	for path, field := range map[string]string{"jobType": "type", "accessInstructions": "access", "scenarioBrief": "brief"} {
		r.Named(path, field)
	}
	for i := range v.Slots {
		for name, field := range map[string]string{"roleLabel": "role", "targetDevice": "device", "targetBrowser": "browser"} {
			r.Named(fmt.Sprintf("slots[%d].%s", i, name), fmt.Sprintf("%s-%d", field, i+1))
		}
	}
	refused, err := d.shown(r, &v.submitView, in.Test, len(in.Slots), warned, wrong, notice)
	if err != nil {
		return ui.Answer{}, err
	}
	err = d.keep(r, sessionDraft)
	return ui.Answer{Template: "newsession", Title: "New session", View: v, Refused: refused}, err
}
