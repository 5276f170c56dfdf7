package room

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"humanqa/domain"
	"humanqa/httpapi/ui"
	"humanqa/internal/backoff"
	"humanqa/internal/voice"
	"humanqa/projections/changes"
	"humanqa/projections/sessions"
)

// Voice is independent of the tests: a failure of it changes neither the lobby nor a
// verdict, and nothing of it is kept.

const (
	// lookEvery is the interval at which the service checks that a person may still take
	// part. A change of the session starts a check at once, at most one in a lookPause.
	lookEvery = 15 * time.Second
	lookPause = 500 * time.Millisecond
	// pingTime bounds a browser's answer to a ping.
	pingTime = 10 * time.Second
)

// The reasons for the end of the chat that a browser gets (assets/src/voice.ts has the words).
const (
	endedOver = "over" // the session is over, or the person may no longer take part
	endedFull = "full"
)

// voice is nil where there is nothing to show.
func (d Deps) voice(s seat) *ui.Voice {
	if !s.VoiceEnabled || !s.mayTalk() {
		return nil
	}
	return &ui.Voice{Path: s.Path, Watches: s.Watches(), Off: d.Voice == nil}
}

func (s seat) mayTalk() bool {
	return s.ClosedAt == nil && s.Own.Status != sessions.SlotDropped
}

// talk takes a browser into the session's voice chat, until the person has to leave.
func (d Deps) talk(audience ui.Audience, door func(*ui.Request) (seat, error)) func(*ui.Request) (ui.Answer, error) {
	return func(r *ui.Request) (ui.Answer, error) {
		s, err := door(r)
		switch {
		case err != nil:
			return ui.Answer{}, err
		case d.voice(s) == nil || d.Voice == nil:
			return ui.Answer{}, domain.Conflict("there is no voice in this session now").WithHint("the test goes on without it")
		}
		own, err := url.Parse(r.Origin())
		if err != nil {
			return ui.Answer{}, err
		}
		// A browser sends the origin of the script that asks; Accept checks that it is
		// this service.
		if r.Header.Get("Origin") == "" {
			return ui.Answer{}, domain.Forbidden("only our own pages talk here").WithHint("open the session's page")
		}
		conn, err := websocket.Accept(r.Writer, r.Request, &websocket.AcceptOptions{OriginPatterns: []string{own.Host}})
		if err != nil {
			return ui.Answer{Taken: true}, nil // Accept has answered
		}
		defer func() { _ = conn.CloseNow() }()
		conn.SetReadLimit(voice.MaxMessage)
		var beside sync.WaitGroup
		defer beside.Wait()
		ctx, end := context.WithCancelCause(r.Context())
		defer end(nil)
		beside.Go(func() { d.watch(ctx, end, r, s.ID, audience, door) })
		beside.Go(func() { ping(ctx, end, conn) })

		guest := voice.Guest{Account: s.AccountID, Key: r.Person.ID, Label: s.label(s.Own.Slot), Watches: s.Watches()}
		err = d.Voice.Join(ctx, s.ID, guest, line{conn})
		switch {
		case errors.Is(err, voice.ErrFull):
			_ = wsjson.Write(ctx, conn, voice.Message{Type: "end", Why: endedFull}) // an error: the person is gone
		case err != nil:
			r.Log.WithError(err).Info("a person left the voice chat")
		}
		_ = conn.Close(websocket.StatusNormalClosure, "") // an error: the person is gone
		return ui.Answer{Taken: true}, nil
	}
}

// watch ends the talk of a person who may no longer take part: the session is over, or
// their slot or their sign-in is gone.
func (d Deps) watch(
	ctx context.Context, end context.CancelCauseFunc, hr *ui.Request, id string, audience ui.Audience, door func(*ui.Request) (seat, error),
) {
	again := *hr
	r := &again
	var follow []string
	for _, m := range r.Person.Memberships() {
		follow = append(follow, m.AccountID)
	}
	if checker := r.Person.CheckerID(); checker != "" {
		follow = append(follow, changes.Checker(checker))
	}
	changed, leave := d.Changes.Follow(follow...)
	defer leave()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case streams := <-changed:
			if !slices.Contains(streams, domain.SessionStream(id)) && !slices.Contains(streams, changes.Everything) {
				continue
			}
		case <-tick.C:
		}
		err := r.Again(audience)
		var s seat
		if err == nil {
			s, err = door(r)
		}
		var refused *domain.Error
		switch {
		case err == nil && !s.mayTalk(), errors.As(err, &refused):
			end(voice.End(endedOver))
			return
		case err != nil && ctx.Err() == nil:
			r.Log.WithError(err).Warn("it is not known whether a person may still talk")
		}
		_ = backoff.Wait(ctx, lookPause)
	}
}

// ping ends a connection whose other side no longer answers.
func ping(ctx context.Context, end context.CancelCauseFunc, conn *websocket.Conn) {
	for backoff.Wait(ctx, lookEvery) == nil {
		short, cancel := context.WithTimeout(ctx, pingTime)
		err := conn.Ping(short)
		cancel()
		if err != nil {
			end(err)
			return
		}
	}
}

// line is a browser's WebSocket.
type line struct{ *websocket.Conn }

func (l line) Read(ctx context.Context) (m voice.Message, err error) {
	err = wsjson.Read(ctx, l.Conn, &m)
	return m, err
}

func (l line) Write(ctx context.Context, m voice.Message) error {
	return wsjson.Write(ctx, l.Conn, m)
}
