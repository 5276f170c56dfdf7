package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/httpapi"
	"humanqa/internal/mail"
)

// problems lists why the service is not ready, and notes. It is ready when the log,
// Postgres and the read models can answer for everything that was written. Errors name
// addresses and more: they are for the log, and the reasons are for every client.
func (s *Service) problems(ctx context.Context) []httpapi.Problem {
	var found []httpapi.Problem
	add := func(part, reason string, err error) {
		if err != nil {
			found = append(found, httpapi.Problem{Part: part, Reason: reason, Cause: err})
		}
	}
	if !s.started.Load() {
		found = append(found, httpapi.Problem{Part: "service", Reason: "it is starting"})
	}
	if s.core.postgres != nil && s.core.postgres.Full() {
		found = append(found, httpapi.Problem{Part: "postgres", Reason: "its disk is full"})
	}
	add("postgres", "it does not answer", s.core.DB.PingContext(ctx))
	if problem := s.core.Clock.Problem(); problem != "" {
		found = append(found, httpapi.Problem{Part: "clock", Reason: problem})
	}
	if strange := s.core.Binding.Problem(); strange != nil {
		found = append(found, httpapi.Problem{Part: "log", Reason: strange.Message, Cause: strange})
		return found // the log is not looked at
	}
	head, err := s.core.Binding.Guard().Head(ctx)
	add("log", cmp.Or(s.core.Binding.Silence(), "it does not answer"), err)
	if err == nil {
		err = s.core.Log.Writable(ctx)
		reason := "it does not answer"
		if full := (*domain.Error)(nil); errors.As(err, &full) {
			reason = full.Message
		}
		add("log", reason, err)
	}
	if len(found) > 0 {
		return found // the rest would only repeat it
	}
	var notes []httpapi.Problem
	all, err := s.consumers.Status(ctx)
	add("projections", "their state cannot be read", err)
	for _, status := range all {
		if problem := status.Problem(); problem != "" {
			found = append(found, httpapi.Problem{Part: "projections", Reason: problem})
		}
		for _, note := range status.Notes() {
			notes = append(notes, httpapi.Problem{Note: true, Part: "projections", Reason: note})
		}
	}
	for part, problem := range map[string]func(context.Context) (string, error){
		"audit": s.core.Signer().Problem, "invariants": s.checks.Problem,
	} {
		note, err := problem(ctx)
		add(part, "its findings cannot be read", err)
		if note != "" {
			notes = append(notes, httpapi.Problem{Note: true, Part: part, Reason: note})
		}
	}
	if note := unknownNote(s.feed.Unknown()); note != "" {
		notes = append(notes, httpapi.Problem{Note: true, Part: "log", Reason: note})
	}
	if problem := s.dispatcher.Problem(); problem != "" {
		found = append(found, httpapi.Problem{Part: "webhooks", Reason: problem})
	}
	if s.cfg.Mail != nil { // whatever its problem, the service answers
		note, err := mail.Note(ctx, s.core.DB)
		add("mail", "its letters cannot be counted", err)
		if note != "" {
			notes = append(notes, httpapi.Problem{Note: true, Part: "mail", Reason: note})
		}
	}
	if s.mail != nil && s.mail.Problem() != "" {
		notes = append(notes, httpapi.Problem{Note: true, Part: "mail", Reason: s.mail.Problem()})
	}
	for _, problem := range s.policies.Problems() {
		found = append(found, httpapi.Problem{Part: "policies", Reason: problem})
	}
	if len(found) > 0 {
		return append(found, notes...)
	}
	short, cancel := context.WithTimeout(ctx, catchUpLimit)
	defer cancel()
	add("projections", "they are behind the log", s.consumers.WaitFor(short, head))
	return append(found, notes...)
}

// unknownNote tells of events that a newer version of the service has written.
func unknownNote(unknown []eventstore.Unknown) string {
	if len(unknown) == 0 {
		return ""
	}
	var events int64
	var names []string
	for i, u := range unknown {
		events += u.Events
		if i < unknownNamed {
			names = append(names, u.String())
		}
	}
	if len(unknown) > unknownNamed {
		names = append(names, "and others")
	}
	return fmt.Sprintf("a newer version of the service has written %d events that this process does not know, and goes on without: %s", events,
		strings.Join(names, ", "))
}

// unknownNamed is how many types a note names.
const unknownNamed = 3

// catchUpLimit is how far the read models of a ready service may be behind the
// log.
const catchUpLimit = 2 * time.Second
