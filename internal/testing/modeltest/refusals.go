package modeltest

import (
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/internal/testing/logtest"
)

// Refusals writes tests that were refused, of an account that stays and of one that is erased.
func Refusals(log *logtest.Memory) {
	for _, id := range []string{"refused-stays", "refused-goes"} {
		meta := domain.Metadata{Actor: "policy:refusals", AccountID: id, Time: Noon}
		log.RecordAs(meta, domain.AccountStream(id), &account.Created{Name: id}, &account.SubmissionsRefused{
			From: Noon.Add(-time.Minute), To: Noon,
			Counts: []account.RefusedCount{{Reason: domain.CodeInsufficientCredits, Source: "deploy", Tests: 2}},
			Samples: []account.RefusedTest{{
				Source: "deploy", URL: "https://shop.example.com/" + id, Commit: "abcdef0", Branch: "main", Whole: true,
			}},
		}, &account.SubmissionsRefused{
			From: Noon, To: Noon,
			Counts: []account.RefusedCount{{Reason: domain.CodeRateLimited, Source: "api", KeyID: id + ".k", Tests: 1}},
		})
	}
	log.RecordAs(domain.Metadata{Actor: "operator", Time: Noon}, domain.AccountStream("refused-goes"),
		&account.Erased{By: "ada", Reason: "asked for it"})
}
