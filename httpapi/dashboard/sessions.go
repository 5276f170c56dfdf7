package dashboard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/sessions"
)

func (d Deps) sessions(r *ui.Request) (ui.Answer, error) {
	list, err := ui.List(r, func(limit, offset int) ([]sessions.Session, int, error) {
		return d.Reads.Sessions.List(r.Context(), r.Account.ID, sessions.Filter{Limit: limit, Offset: offset})
	})
	return ui.Show("sessions", "Sessions", list, ui.Everything), err
}

// checkersView is the part of a session's form that is about its checkers.
type checkersView struct {
	Number int
	Counts []int // that can be chosen
	Slots  []slotForm
}

// slotForm is one checker of a session that is being written.
type slotForm struct {
	N                     int // from 1
	Role, Device, Browser string
}

func (v *submitView) forCheckers() {
	v.Types = slices.DeleteFunc(v.Types, job.Type.Automatic) // no checkers meet for these
	v.Checkers = checkersView{Number: session.MinSlots}
	if n, err := strconv.Atoi(v.Fields.Get("checkers")); err == nil {
		v.Checkers.Number = min(max(n, session.MinSlots), session.MaxSlots)
	}
	at := func(name string, i int) string {
		if values := v.Fields[name]; i < len(values) {
			return values[i]
		}
		return ""
	}
	for n := range session.MaxSlots {
		v.Checkers.Slots = append(v.Checkers.Slots,
			slotForm{N: n + 1, Role: at("role", n), Device: at("device", n), Browser: at("browser", n)})
		if n+1 >= session.MinSlots {
			v.Checkers.Counts = append(v.Checkers.Counts, n+1)
		}
	}
}

var sessionForm = hostedForm{
	draftForm: sessionDraft, template: "newsession", title: "New session", session: true,
	read: readSession,
	submit: func(d Deps, r *ui.Request, in command.NewSession) (domain.Position, string, error) {
		out, err := d.Commands.CreateSession(r.Context(), r.Cause(), in)
		return out.Position, "/dashboard/sessions/" + out.SessionID, err
	},
}

func readSession(r *ui.Request, limits *input.Limits) (command.NewSession, wire.Object, input.Target) {
	body := map[string]any{"voiceEnabled": r.PostFormValue("silent") == ""}
	for field, name := range map[string]string{
		"url": "url", "feature": "feature", "type": "jobType", "priority": "priority", "access": "accessInstructions",
		"brief": "scenarioBrief",
	} {
		r.Named(name, field)
		if text := strings.TrimSpace(r.PostFormValue(field)); text != "" {
			body[name] = text
		}
	}
	v := submitView{Fields: r.PostForm}
	v.forCheckers()
	var slots []map[string]any
	for i, slot := range v.Checkers.Slots[:v.Checkers.Number] {
		slots = append(slots, map[string]any{"roleLabel": slot.Role, "targetDevice": slot.Device, "targetBrowser": slot.Browser})
		for name, field := range map[string]string{"roleLabel": "role", "targetDevice": "device", "targetBrowser": "browser"} {
			r.Named(fmt.Sprintf("slots[%d].%s", i, name), fmt.Sprintf("%s-%d", field, i+1))
		}
	}
	body["slots"] = slots
	form := ui.Object(body)
	in, target := input.Session(form, limits)
	return in, form, target
}
