package ui

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"humanqa/domain"
)

// Body makes of a form's fields what the API's reader takes; fields gives their
// names there. Empty fields are left out.
func Body(r *Request, fields map[string]string) []byte {
	values := map[string]any{}
	for field, name := range fields {
		if value := strings.TrimSpace(r.PostFormValue(field)); value != "" {
			values[name] = value
		}
	}
	raw, _ := json.Marshal(values) // strings always encode
	return raw
}

// Wrongs gives what a person can mend, by the API's path; nil: the error is
// another one.
func Wrongs(err error) map[string]string {
	var known *domain.Error
	if !errors.As(err, &known) || known.Kind != domain.KindInvalid {
		return nil
	}
	out := map[string]string{}
	details, _ := known.Extras["details"].([]domain.Detail)
	for _, detail := range details {
		out[detail.Path] = detail.Message
	}
	return out
}

// Sentences puts what is wrong into words, by the names that the form gives its
// fields: pairs of a path and a name.
func Sentences(wrong map[string]string, names ...string) (out []string) {
	told := map[string]bool{}
	for i := 0; i+1 < len(names); i += 2 {
		if message, there := wrong[names[i]]; there {
			out = append(out, names[i+1]+" "+message+".")
			told[names[i]] = true
		}
	}
	for path, message := range wrong {
		if !told[path] {
			out = append(out, fmt.Sprintf("%s %s.", path, message))
		}
	}
	return out
}

// HostOf is what people recognise a URL by.
func HostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return raw
	}
	return strings.TrimPrefix(u.Host, "www.")
}

// SafeLink is a URL that may stand in a link: what a client or a checker wrote
// is never more than an address.
func SafeLink(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return raw
}
