package jobs

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lib/pq"

	"humanqa/domain/identity"
	"humanqa/domain/job"
)

// The words that a search of tests reads. They have a table of their own, because its
// index is expensive to write and most changes of a job leave its words as they are.
//
// Every word begins with six characters that stand for the account. So the index holds a
// list of jobs for each word of each account. A search costs the same however many
// accounts there are, and Postgres knows how common a word is in one account. Two
// accounts may share the characters, so a search compares the account's id, too.
//
// The kind of a test and its verdict are words, too (see labels), so they need no index
// of their own. created_at is here so that the newest of many tests are found without
// their jobs.
const jobWordsDDL = `
CREATE TABLE {schema}.job_words (
    created_at timestamptz NOT NULL,
    job_id     text PRIMARY KEY,
    account_id text NOT NULL,
    project_id text NOT NULL,
    status     text NOT NULL,
    words      tsvector NOT NULL
) WITH (fillfactor = 85);
`

const jobWordsIndexes = `
CREATE INDEX job_words_by_word ON {schema}.job_words USING gin (words);
`

// wordsRow is a job's text on its way into the words.
type wordsRow struct {
	CreatedAt time.Time      `json:"created_at"`
	JobID     string         `json:"job_id"`
	AccountID string         `json:"account_id"`
	ProjectID string         `json:"project_id"`
	Status    job.Status     `json:"status"`
	Labels    pq.StringArray `json:"labels"`
	Text      string         `json:"text"`
}

// accountsOwn puts the account's characters before each word of the text of a tsquery. A
// quote within a word is doubled there.
func accountsOwn(text, account string) string {
	return `regexp_replace(` + text + `, $re$'((?:[^']|'')+)'$re$, '''' || left(md5(` + account + `), 6) || '\1''', 'g')`
}

// writeWordsSQL puts the account's characters before each word, too: in the text of a tsvector
// a quote behind a space begins a word, and no word has a space.
const writeWordsSQL = `
INSERT INTO {schema}.job_words (created_at, job_id, account_id, project_id, status, words)
SELECT created_at, job_id, account_id, project_id, status,
       replace(' ' || (to_tsvector('simple', text) || array_to_tsvector(ARRAY(SELECT json_array_elements_text(labels))))::text,
               ' ''', ' ''' || left(md5(account_id), 6))::tsvector
FROM json_to_recordset($1) AS r (created_at timestamptz, job_id text, account_id text, project_id text, status text, labels json, text text)
ON CONFLICT (job_id) DO UPDATE
SET status = EXCLUDED.status,
    words = EXCLUDED.words`

// querySQL is a search as a tsquery. Its parameters are the search, the suffix of its
// last word (":*" if that may be the beginning of a word), and the labels. A search with
// text but without any word fits no job.
var querySQL = `(` + accountsOwn(`
      CASE WHEN %[1]s = '' THEN '' ELSE
        COALESCE(NULLIF(regexp_replace(websearch_to_tsquery('simple', %[1]s)::text, '''$', '''' || %[2]s), ''), '''=none''')
      END`, "$1") + `::tsquery && ` + accountsOwn(`%[3]s::text`, "$1") + `::tsquery)`

// wordsSQL is the condition that a job's words fit a search. The planner does not see the
// search: for a word that half of the tests have it may read all of them, which takes
// twice as long as the index.
var wordsSQL = `w.words @@ (SELECT ` + querySQL + `)`

// candidatesSQL counts the tests whose words must be read one by one, up to a limit. The
// index supports neither phrases nor excluded words; it finds only the tests that have
// all the other words. It gives 0 for a search that the index answers alone.
var candidatesSQL = `
WITH search AS MATERIALIZED (
    SELECT words, querytree(words) AS known
    FROM (SELECT ` + querySQL + ` AS words) AS q
), indexed AS MATERIALIZED (
    SELECT CASE
             WHEN known = 'T' THEN '''' || left(md5($1), 6) || '=kind:'':*' -- all tests
             ELSE regexp_replace(known, '<[-0-9]+>', '&', 'g')
           END::tsquery AS words
    FROM search
    WHERE words::text ~ '[!<]'
)
SELECT count(*)
FROM (SELECT 1
      FROM readmodel.job_words w
      WHERE w.account_id = $1
        AND w.words @@ (SELECT words FROM indexed)%[4]s
      LIMIT %[5]s) AS candidates`

// labels are the words for a kind and a verdict. No word of a text begins like them.
func labels(kind job.Type, verdict string) (all pq.StringArray) {
	if kind != "" {
		all = append(all, "=kind:"+string(kind))
	}
	if verdict != "" {
		all = append(all, "=verdict:"+verdict)
	}
	return all
}

// maxText bounds the searched text of a job, in bytes: a tsvector holds a megabyte at
// most.
const maxText = 100_000

// words gives the searched text of the job, the most important parts first. Postgres may
// know only ASCII letters, so the text is folded here.
func (r *storedRow) words() wordsRow {
	var text strings.Builder
	add := func(words ...string) {
		for _, w := range words {
			text.WriteString(w[:min(len(w), maxText-text.Len())])
			if text.Len() < maxText {
				text.WriteByte('\n')
			}
		}
	}
	add(firstOfID(r.ID), r.Title, r.URL, apart(r.URL), r.Feature)
	for i := range r.Items {
		item := &r.Items[i]
		add(item.Description, item.Note, item.ExpectedOutcome)
	}
	add(r.Summary, r.Description)
	return wordsRow{
		CreatedAt: r.CreatedAt, JobID: r.ID, AccountID: r.AccountID, ProjectID: r.ProjectID, Status: r.Status,
		Labels: labels(r.Type, r.OverallStatus),
		Text:   identity.Fold(strings.ToValidUTF8(text.String(), " ")),
	}
}

// firstOfID is as much of an id as people copy from a list.
func firstOfID(id string) string {
	first, _, _ := strings.Cut(id, "-")
	return first
}

// apart splits an address into words: Postgres takes a host for one word.
func apart(url string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return ' '
	}, url)
}

// shortestPrefix is the least length of the beginning of a word: a shorter beginning fits
// too many words.
const shortestPrefix = 3

// prefixOf gives the suffix of the search's last word. The word counts as the beginning
// of one, unless it is short, quoted or excluded.
func prefixOf(search string) string {
	last := search[strings.LastIndexFunc(search, unicode.IsSpace)+1:]
	plain := strings.IndexFunc(last, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) < 0
	if !plain || utf8.RuneCountInString(last) < shortestPrefix || strings.Count(search, `"`)%2 == 1 {
		return ""
	}
	return ":*"
}
