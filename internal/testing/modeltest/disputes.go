package modeltest

import (
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/internal/testing/logtest"
)

// Rule writes a dispute of a completed job's item, its answer and its decision.
func Rule(m *logtest.Memory, jobID, itemID string, ruling job.Ruling) {
	stream := domain.JobStream(jobID)
	var st job.State
	for _, r := range m.Stream(stream) {
		st = job.Evolve(st, r.Event)
	}
	write := func(events []domain.Event, err error) {
		if err != nil {
			panic(err)
		}
		for _, e := range events {
			st = job.Evolve(st, e)
		}
		m.Record(stream, events...)
	}
	id, at := jobID+"-"+itemID, st.CompletedAt.Add(time.Minute)
	write(job.DecideDispute(st, id, itemID, "It works here.", at))
	write(job.DecideAnswerDispute(st, st.CheckerID, id, "It did not.", at))
	write(job.DecideRule(st, id, ruling, at))
	if ruling.MakesGood() {
		write(job.DecideSettleDispute(st, map[job.Ruling]string{job.Retested: jobID + "-again"}[ruling], at))
	}
}

// Disputes appends tests of a project with a dispute of each ruling, and one that is erased.
func Disputes(m *logtest.Memory) {
	m.Record(domain.ProjectStream("disputed"), &project.Created{AccountID: "acc", Name: "disputed", HookHash: "disputed", At: Noon})
	for i, ruling := range append(job.Rulings(), job.Overturned, job.Overturned) {
		id := fmt.Sprint("disputed", i)
		m.Record(domain.JobStream(id), Created("acc", func(e *job.Created) { e.ProjectID = "disputed" }), Claimed("ann"),
			Results(id, i, "pay=fail", "cart=pass", "mail=fail"), Analysed(50))
		Rule(m, id, id+"-0", ruling)
		if i%2 == 1 {
			Rule(m, id, id+"-1", job.Overturned)
		}
	}
	m.Record(domain.JobStream("disputed5"), &job.Erased{By: "op", Reason: "asked", At: *At(90)})
}
