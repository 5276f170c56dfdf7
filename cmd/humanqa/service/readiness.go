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
	var found, notes []httpapi.Problem
	add := func(part, reason string, err error) {
		if err != nil {
			found = append(found, httpapi.Problem{Part: part, Reason: reason, Cause: err})
		}
	}
	tell := func(part, reason string) {
		if reason != "" {
			found = append(found, httpapi.Problem{Part: part, Reason: reason})
		}
	}
	note := func(part, reason string) {
		if reason != "" {
			notes = append(notes, httpapi.Problem{Note: true, Part: part, Reason: reason})
		}
	}
	if !s.started.Load() {
		tell("service", "it is starting")
	}
	if s.core.postgres != nil && s.core.postgres.Full() {
		tell("postgres", "its disk is full")
	}
	add("postgres", "it does not answer", s.core.DB.PingContext(ctx))
	tell("clock", s.core.Clock.Problem())
	if strange := s.core.Binding.Problem(); strange != nil {
		add("log", strange.Message, strange)
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
	all, err := s.consumers.Status(ctx)
	add("projections", "their state cannot be read", err)
	for _, status := range all {
		tell("projections", status.Problem())
		for _, reason := range status.Notes() {
			note("projections", reason)
		}
	}
	for part, problem := range map[string]func(context.Context) (string, error){
		"audit": s.core.Signer().Problem, "invariants": s.checks.Problem,
	} {
		reason, err := problem(ctx)
		add(part, "its findings cannot be read", err)
		note(part, reason)
	}
	note("log", unknownNote(s.feed.Unknown()))
	tell("webhooks", s.dispatcher.Problem())
	if s.cfg.Mail != nil { // whatever its problem, the service answers
		reason, err := mail.Note(ctx, s.core.DB)
		add("mail", "its letters cannot be counted", err)
		note("mail", reason)
	}
	if s.mail != nil {
		note("mail", s.mail.Problem())
	}
	for _, problem := range s.policies.Problems() {
		tell("policies", problem)
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
