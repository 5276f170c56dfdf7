package room_test

import (
	"io/fs"
	"os"
	"slices"
	"testing"
	"time"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/room"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/workbench"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pagetest"
	"humanqa/internal/voice"
)

func TestMain(m *testing.M) { os.Exit(pagetest.Main(m)) }

type guest = pagetest.Guest

// world is the running service with the room.
type world struct{ *pagetest.Service }

var shared = pagetest.Shared{Pages: pages}

func setup(t *testing.T) world {
	t.Helper()
	return world{shared.In(t)}
}

func pages(s *pagetest.Service) ([]fs.FS, []ui.Page) {
	talks, err := voice.Listen(s.Owner.Context(), voice.Config{Addr: "127.0.0.1:0"})
	must.NoError(s.Owner, err)
	s.Owner.Cleanup(func() { _ = talks.Close() }) // it may be closed before
	return []fs.FS{room.Templates, workbench.Templates}, slices.Concat(
		room.Pages(room.Deps{Commands: s.Commands, Reads: s.Reads, Evidence: s.Evidence, Changes: s.Changes, Voice: talks, Now: time.Now}),
		workbench.Pages(workbench.Deps{Commands: s.Commands, Reads: s.Reads, Evidence: s.Evidence, Voice: true, Now: time.Now}), // the lobby sends its heartbeat
	)
}

func (w world) in(t *testing.T) world { return world{w.In(t)} }

// opened is a session with these parts to play.
func (w world) opened(accountID string, labels ...string) command.CreatedSession {
	w.T.Helper()
	in := command.NewSession{
		Test:          command.HostedTest{Submission: job.Submission{URL: "https://chat.example.com", Feature: "Two people talk to each other", Source: "session"}, Host: "chat.example.com"},
		ScenarioBrief: "The caller rings, the callee answers after ten seconds.\nThen both hang up.",
		VoiceEnabled:  true,
	}
	for _, l := range labels {
		in.Slots = append(in.Slots, command.NewSlot{RoleLabel: l, Target: job.Target{Device: "Phone"}})
	}
	s, err := w.Commands.CreateSession(w.T.Context(), pagetest.Client(accountID), in)
	w.Shown(s.Position, err)
	return s
}

// sits is a checker at work in a slot.
type sits struct {
	w  world
	id string
	command.ClaimedJob
}

func (w world) claimed(checkerID, jobID string) sits {
	w.T.Helper()
	c, err := w.Commands.ClaimJob(w.T.Context(), pagetest.ByChecker(checkerID), checkerID, jobID)
	w.Shown(c.Position, err)
	return sits{w, checkerID, c}
}

func (s sits) claim() command.Claim {
	return command.Claim{CheckerID: s.id, JobID: s.JobID, Token: s.Token}
}

func (s sits) ready() {
	s.w.T.Helper()
	out, err := s.w.Commands.ReadySession(s.w.T.Context(), pagetest.ByChecker(s.id), s.id, s.SessionID)
	s.w.Shown(out.Position, err)
}

func (s sits) says(item int, status job.ItemStatus, note string) {
	s.w.T.Helper()
	in := command.CheckItem{ItemID: s.Checklist[item].ID, Status: status, Note: note}
	if status == job.ItemSkip {
		in.Reason = "blocked"
	}
	_, at, err := s.w.Commands.CheckItem(s.w.T.Context(), pagetest.ByChecker(s.id), s.claim(), in)
	s.w.Shown(at, err)
}

func (s sits) completes(status job.ItemStatus) {
	s.w.T.Helper()
	for n := range s.Checklist {
		s.says(n, status, "")
	}
	_, at, err := s.w.Commands.CompleteJob(s.w.T.Context(), pagetest.ByChecker(s.id), s.claim(), command.CompleteJob{Summary: "Seen."})
	s.w.Shown(at, err)
}
