package input

import (
	"net/http"
	"sync"

	"humanqa/httpapi/wire"
)

// Submissions are the calls that submit tests, in the order in which a warning names
// them. A reader of an empty body shows which fields it looks for.
var Submissions = sync.OnceValue(func() (all []wire.Submission) {
	l := new(Limits)
	for _, s := range []struct {
		call string
		read func(wire.Object)
	}{
		{"POST /v1/jobs", func(o wire.Object) { Submit(o); CommitStatus(o, http.Header{}) }},
		{"POST /v1/hosted/test", func(o wire.Object) { HostedTest(o, http.Header{}, l) }},
		{"POST /v1/hosted/sessions", func(o wire.Object) { Session(o, l) }},
		{"POST /v1/jobs/bulk", func(o wire.Object) { Bulk(o, http.Header{}) }},
		{"POST /v1/hooks/deploy/{token}", func(o wire.Object) { Deploy(http.Header{}, o) }},
	} {
		o := wire.ParseObject([]byte("{}"), new(wire.Problems))
		s.read(o)
		all = append(all, wire.Submission{Name: s.call, Fields: o.Looked()})
	}
	return all
})
