package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"humanqa/httpapi/v1/checkers"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/webmtest"
)

// thin is a connection by which no more than 3 Mbit go out in a second. On a machine that
// is busy the link goes on sending while its sender waits for a processor.
type thin struct {
	net.Conn
	free time.Time // when the link has sent what it was given
}

const (
	thinRate   = 3_000_000 / 8 // bytes a second
	thinPiece  = 8 << 10
	thinBuffer = 2 * time.Second // that the sender may be late by
)

func (c *thin) Write(b []byte) (sent int, err error) {
	for len(b) > 0 && err == nil {
		now := time.Now()
		switch late := now.Sub(c.free); {
		case c.free.IsZero():
			c.free = now
		case late > thinBuffer:
			c.free = now.Add(-thinBuffer)
		}
		var n int
		n, err = c.Conn.Write(b[:min(len(b), thinPiece)])
		c.free = c.free.Add(time.Duration(n) * time.Second / thinRate)
		time.Sleep(time.Until(c.free)) // the link, not a wait
		sent, b = sent+n, b[n:]
	}
	return sent, err
}

// Ten checkers finish at once, each on a thin line: everything that they send is
// taken, and is what they sent.
func TestTenCheckersOnThinLinesFinishAtOnce(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(1000)
	srv := s.online()
	film := webmtest.Film{Seconds: 6, Frame: 20_000}.Bytes()
	type sender struct {
		*work
		film string
	}
	senders := make([]sender, 10)
	for n := range senders {
		w := s.working(key)
		w.checks(passes)
		senders[n] = sender{w, w.recording()}
	}
	send := func(c sender, client *http.Client, method, path, body string, headers ...string) error {
		r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+"/v1/checker/jobs/"+c.jobID+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+c.checker)
		r.Header.Set(wire.ClaimTokenHeader, c.token)
		for n := 0; n < len(headers); n += 2 {
			r.Header.Set(headers[n], headers[n+1])
		}
		res, err := client.Do(r)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		answer, err := io.ReadAll(res.Body)
		if err == nil && res.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s %s: %d %s", method, path, res.StatusCode, answer)
		}
		return err
	}
	var all sync.WaitGroup
	for n, c := range senders {
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				return &thin{Conn: conn}, err
			}}}
			defer client.CloseIdleConnections()
			begun := time.Now()
			for _, step := range []struct {
				method, path, body string
				headers            []string
			}{
				{"PATCH", "/recordings/" + c.film, string(film), []string{checkers.UploadOffsetHeader, "0"}},
				{"POST", "/recordings/" + c.film + "/finish", "", nil},
				{"POST", "/complete", `{"summary":"Fine."}`, nil},
			} {
				if err := send(c, client, step.method, step.path, step.body, step.headers...); err != nil {
					t.Errorf("checker %d: %v", n, err)
					return
				}
			}
			if least := time.Duration(len(film)) * time.Second / thinRate; time.Since(begun) < least {
				t.Errorf("checker %d sent %d bytes in %s: that is no thin line", n, len(film), time.Since(begun))
			}
		})
	}
	all.Wait()
	s.assembles(0)
	s.visible(s.log.Head(), nil)
	if got := len(s.attached()); got != len(senders) {
		t.Fatalf("%d recordings are attached", got)
	}
	for _, c := range senders {
		got, report := c.seen(key)
		if frames := bytes.Count(got, film[len(film)-1000:]); report["checkerSummary"] != "Fine." || len(got) < len(film)*9/10 || frames == 0 {
			t.Errorf("the report's recording has %d bytes of %d", len(got), len(film))
		}
	}
}
