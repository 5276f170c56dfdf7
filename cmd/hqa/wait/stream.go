package wait

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"humanqa/integrations/clients/go/humanqa"
)

// silence ends a stream that says nothing: the service gives a sign of life every
// fifteen seconds. A machine that slept finds its streams dead by it.
const silence = 40 * time.Second

// Follow holds the stream of the account's events behind the cursor until it breaks. It
// calls open once the stream stands, and event with the cursor of each event and the job that
// it is about; a session's event has none.
func Follow(ctx context.Context, client *humanqa.Client, after string, open func(), event func(cursor, jobID string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	path := "/v1/events"
	if after != "" {
		path += "?after=" + url.QueryEscape(after)
	}
	res, err := client.Open(ctx, humanqa.Call{Method: http.MethodGet, Path: path, Accept: "text/event-stream"})
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // the rest is of no use
	if kind := res.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return fmt.Errorf("%s answers %s instead of a stream of events", client.Base(), kind)
	}
	open()
	var cursor string
	var about *struct{ JobID string }
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		watchdog.Reset(silence)
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			cursor = value
		case "data":
			if json.Unmarshal([]byte(value), &about) != nil {
				return fmt.Errorf("%s sends a stream that is none of events", client.Base())
			}
		case "":
			if about != nil {
				event(cursor, about.JobID)
			}
			about = nil
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w: %w", humanqa.ErrNetwork, err)
	}
	return fmt.Errorf("%w: the stream ended", humanqa.ErrNetwork)
}
