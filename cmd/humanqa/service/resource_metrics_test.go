package service

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"humanqa/httpapi/evidence"
	"humanqa/internal/testing/must"
)

// brokenFiles fails every operation.
type brokenFiles struct {
	evidence.Files
	err error
}

func (f brokenFiles) Write(_ context.Context, _, _ string, _ map[string]string, content io.Reader) error {
	_, _ = io.Copy(io.Discard, content)
	return f.err
}

func (f brokenFiles) Read(context.Context, string, int64, int64) (io.ReadCloser, error) {
	return nil, f.err
}

func (f brokenFiles) Delete(context.Context, string) error { return f.err }

// hungUp is the body of a client that goes away.
type hungUp struct{}

func (hungUp) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestTheStoresFailuresAreCountedAndTheClientsAreNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err                 error
		content             io.Reader
		write, read, remove float64
	}{
		"a store that fails":        {errors.New("no space left"), strings.NewReader("png"), 1, 1, 1},
		"a store that works":        {nil, strings.NewReader("png"), 0, 0, 0},
		"a client that hangs up":    {errors.New("copy: unexpected EOF"), hungUp{}, 0, 1, 1},
		"a request that has ended":  {context.Canceled, strings.NewReader("png"), 0, 0, 0},
		"a store that is not there": {context.DeadlineExceeded, strings.NewReader("png"), 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := prometheus.NewRegistry()
			files := countFiles(brokenFiles{err: c.err}, registry)
			_ = files.Write(t.Context(), "k", "image/png", nil, c.content)
			_, _ = files.Read(t.Context(), "k", 0, 1)
			_ = files.Delete(t.Context(), "k")
			families, err := registry.Gather()
			must.NoError(t, err)
			got := map[string]float64{}
			for _, m := range families[0].GetMetric() {
				got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
			if want := map[string]float64{"write": c.write, "read": c.read, "delete": c.remove}; !maps.Equal(got, want) {
				t.Errorf("failures are %v, want %v", got, want)
			}
		})
	}
}
