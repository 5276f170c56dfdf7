package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"humanqa/cmd/humanqa/service/backup"
	"humanqa/internal/receiver"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// A reader has a cursor of a log that is then restored from an older backup. It is told
// so, continues where the answer says, and shows meanwhile as refused. The webhooks and all
// other consumers have their places in the same database, and go on by themselves.
func TestARestoredLogUnderAReaderWithAnOldCursor(t *testing.T) {
	t.Parallel()
	p := newEmbedded(t)
	logs := make(chan string, 100)
	hook := p.receive(t, receiver.Config{Received: func(_ context.Context, r receiver.Delivery) int {
		logs <- r.Header.Get("X-Service-Log")
		return http.StatusNoContent
	}})
	delivers := []string{"HUMANQA_WEBHOOK_CA_FILE=" + hook.CAFile(), "HUMANQA_WEBHOOK_ALLOW=127.0.0.0/8"}
	p.environ = append(p.environ, delivers...)
	s := p.start()
	_, key := p.newAccount(100)
	project := p.call(http.StatusCreated, "POST", "/v1/projects", key, map[string]any{"name": "Shop", "webhookUrl": hook.URL()}).text("projectId")
	delivered := func(generation string) {
		t.Helper()
		eventually.Within(t, eventually.Patience, func() error {
			for {
				select {
				case log := <-logs:
					if strings.HasSuffix(log, generation) {
						return nil
					}
				default:
					return fmt.Errorf("no delivery is of generation %s", generation)
				}
			}
		})
	}
	submit := func() string {
		return p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1, "projectId", project)).text("jobId")
	}
	after := func(cursor string) string { return "/v1/events?reader=warehouse&after=" + url.QueryEscape(cursor) }
	kept := submit()
	common := p.call(http.StatusOK, "GET", after(""), key, nil).text("next")
	file := filepath.Join(t.TempDir(), "backup.zip")
	var made backup.Saved
	p.cli(&made, "backup", file)
	lost := submit()
	old := p.call(http.StatusOK, "GET", after(common), key, nil).text("next")
	if log := p.call(http.StatusOK, "GET", after(old), key, nil).header.Get("X-Service-Log"); !strings.HasSuffix(log, "/1") {
		t.Errorf("the log is %q", log)
	}
	delivered("/1")
	s.stop()

	q := newEmbedded(t, delivers...)
	q.restore(file, made.Events)
	again := q.start()
	p.addr = q.addr
	p.call(http.StatusOK, "GET", "/v1/jobs/"+kept, key, nil)
	p.call(http.StatusNotFound, "GET", "/v1/jobs/"+lost, key, nil)
	told := p.call(http.StatusConflict, "GET", after(old), key, nil)
	next := told.text("next")
	if told.text("code") != "ANOTHER_LOG" || !strings.HasSuffix(told.text("log"), "/2") || !strings.Contains(told.text("hint"), next) || next == "" {
		t.Errorf("the reader is told %s", told.body)
	}
	stream := p.call(http.StatusConflict, "GET", "/v1/events", key, nil, "Accept", "text/event-stream", "Last-Event-ID", old)
	if stream.text("next") != next {
		t.Errorf("a stream is told %s", stream.body)
	}
	eventually.Within(t, eventually.Patience, func() error {
		return readerIs(p.call(http.StatusOK, "GET", "/v1/events/readers", key, nil), "refused", "ANOTHER_LOG")
	})
	anew := submit()
	delivered("/2") // the webhooks tell it, too
	page := p.call(http.StatusOK, "GET", after(next), key, nil)
	if list := page.list("events"); len(list) != 1 || list[0].(map[string]any)["jobId"] != anew {
		t.Errorf("behind %s there is %s", next, page.body)
	}
	// What both generations have in common is read on without a word.
	p.call(http.StatusOK, "GET", after(common), key, nil)
	eventually.Within(t, eventually.Patience, func() error {
		return readerIs(p.call(http.StatusOK, "GET", "/v1/events/readers", key, nil), "current", "")
	})

	var stated toldLog
	restoredAs, args := q.asWritten(`bin/humanqa eventstore restored --reason "the volume was put back to Monday's snapshot"`)
	q.written(&stated, restoredAs, args)
	if stated.Generation != 3 {
		t.Errorf("the log is %+v", stated)
	}
	q.refuses("ends at", "eventstore", "trimmed", "--up-to", "900000/900000", "--reason", "archived")
	if _, stderr, err := q.tryCLI("eventstore", "trimmed", "--up-to", "12", "--reason", "archived"); exitCode(err) != exitUsage {
		t.Errorf("a strange position: %v, %s", err, stderr)
	}
	at := strings.ReplaceAll(strings.Split(next, ".")[0], "-", "/")
	trimmedAs, args := q.asWritten(`bin/humanqa eventstore trimmed --up-to 1200/1200 --reason "ended jobs of 2024 are in the archive"`, "1200/1200", at)
	q.written(&stated, trimmedAs, args)
	eventually.Within(t, eventually.Patience, func() error {
		r, err := p.try("GET", after(common), key, nil)
		if err == nil && r.status != http.StatusGone {
			err = errNot("gone", r)
		}
		return err
	})
	again.stop()
	stdout, stderr, err := q.tryCLI("fsck")
	if err != nil {
		t.Errorf("fsck: %v\n%s%s", err, stdout, stderr)
	}
	_, stderr, err = q.tryCLI("audit", "verify")
	must.NoError(t, err)
	if stderr != "" {
		t.Error(stderr)
	}
}

func errNot(want string, r reply) error { return fmt.Errorf("not %s: %d %s", want, r.status, r.body) }

// readerIs says whether the only named reader is in the state.
func readerIs(r reply, state, refused string) error {
	list := r.list("readers")
	if len(list) != 1 {
		return errNot("one reader", r)
	}
	reader, _ := list[0].(map[string]any)
	why, _ := reader["refused"].(string)
	if reader["state"] != state || why != refused {
		return errNot(state, r)
	}
	return nil
}
