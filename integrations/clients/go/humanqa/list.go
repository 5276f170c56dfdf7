package humanqa

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"
)

// List walks a list of the API page by page, from its path and the name of its part:
//
//	for job, err := range humanqa.List[humanqa.JobSummary](ctx, client, "/v1/jobs?status=completed", "jobs")
//
// It ends with its first error.
func List[T any](ctx context.Context, c *Client, path, part string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		at, err := url.Parse(path)
		for more := err == nil; more; {
			var page map[string]json.RawMessage
			var items []T
			if err = c.Get(ctx, at.String(), &page); err == nil {
				err = json.Unmarshal(page[part], &items)
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			more = err == nil && next(at, page, len(items))
		}
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}

// next makes the URL that of the next page: behind the cursor that the page names, or behind
// its items. It says false at the end of the list.
func next(at *url.URL, page map[string]json.RawMessage, items int) bool {
	query := at.Query()
	defer func() { at.RawQuery = query.Encode() }()
	for name, parameter := range map[string]string{"nextCursor": "cursor", "next": "after"} {
		if raw, is := page[name]; is {
			var cursor *string
			_ = json.Unmarshal(raw, &cursor) // what is no text ends the list, as null does
			query.Set(parameter, Value(cursor))
			return cursor != nil && string(page["hasMore"]) != "false"
		}
	}
	var offset, total int
	_ = json.Unmarshal(page["offset"], &offset) // without one it is the only page
	_ = json.Unmarshal(page["total"], &total)   // likewise
	query.Set("offset", strconv.Itoa(offset+items))
	return items > 0 && offset+items < total
}
