package modeltest

import (
	"fmt"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/internal/testing/logtest"
)

// Archives appends projects that are archived, one of them restored since, and the end of a
// test of a named batch that waited in each.
func Archives(m *logtest.Memory) {
	owner := "owner"
	for i := range 2 {
		id := fmt.Sprint("archive", i)
		stream, waiting := domain.ProjectStream(id), domain.JobStream(id+"-waiting")
		m.Record(stream, &project.Created{AccountID: "acc", Name: "shop", HookHash: "h-" + id, At: *At(1)})
		m.Record(waiting, Created("acc", func(e *job.Created) {
			e.ProjectID, e.BatchID, e.BatchName, e.CreatedAt = id, id+"-batch", "Release 41", *At(2)
		}))
		m.Record(stream, &project.Archived{Ordered: project.Ordered{At: *At(3), UserID: &owner}})
		m.Record(waiting, &job.Cancelled{Reason: job.CancelArchived, Refund: 5, At: *At(3)})
		if i == 1 {
			m.Record(stream, &project.Restored{Ordered: project.Ordered{At: *At(4), KeyID: "k"}})
		}
	}
}
