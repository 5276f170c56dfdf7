package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// most is the largest memory that a body of the largest kind may bring the
// process to, in MB, however many of them come at once.
const most = 300

// peak is the most memory that the process has ever had, in MB.
func (s *instance) peak() int {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Cmd.Process.Pid))
	if errors.Is(err, os.ErrNotExist) {
		s.t.Skip("this system does not tell")
	}
	must.NoError(s.t, err)
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		s.t.Skip("this system does not tell")
	}
	kilobytes, err := strconv.Atoi(string(found[1]))
	must.NoError(s.t, err)
	return kilobytes >> 10
}

// Four of the largest bodies, whatever they hold: padding, one text that is too
// long, an unknown key, a number; and one account's next to another's.
func TestTheLargestBodiesAreNotAllInMemory(t *testing.T) {
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector has memory of its own")
	}
	t.Parallel()
	p := newProgram(t)
	s := p.spawn()
	const size = 49 << 20
	job := `{"url":"https://example.com/","description":"d","jobType":"Custom","title":%s}`
	escaped := []byte(strings.Replace(job, "%s", `"`+strings.Repeat(`\u00e9`, size/6)+`"`, 1))
	padded := []byte(strings.Replace(job, "%s", strings.Repeat(" ", size)+`"t"`, 1))
	unknown := []byte(strings.Replace(job, "%s", `"t","x":"`+strings.Repeat("y", size)+`"`, 1))
	number := []byte(strings.Replace(job, "%s", `"t","slaMinutes":`+strings.Repeat("1", size), 1))

	var keys []string
	for range 2 {
		var account struct{ APIKey string }
		s.cli(&account, "account", "create", "--name", "Acme", "--credits", "100")
		keys = append(keys, account.APIKey)
	}
	before := s.peak()
	var sent sync.WaitGroup
	for i, body := range [][]byte{escaped, padded, unknown, number} {
		want := []int{http.StatusBadRequest, http.StatusCreated, http.StatusCreated, http.StatusBadRequest}[i]
		key := keys[i/2]
		sent.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url("/v1/jobs"), bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+key)
			res, err := (&http.Client{Timeout: eventually.Patience}).Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = res.Body.Close() }() // read to its end
			answer, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != want {
				t.Errorf("body %d: %d %s %v", i, res.StatusCode, answer, err)
			}
		})
	}
	sent.Wait()
	after := s.peak()
	t.Logf("%d MB before, %d MB at most with four bodies of 49 MB at once", before, after)
	if after >= most {
		t.Errorf("%d MB at most, want less than %d", after, most)
	}
}
