package ai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"humanqa/internal/guard"
)

// server is a server with POST /chat/completions. The vendor's SDK would add 29 MB to the
// program for this one call.
type server struct {
	base string
	key  string
	http *http.Client
}

// prompt is the call's body.
type prompt struct {
	Model          string         `json:"model"`
	Messages       []message      `json:"messages"`
	ResponseFormat responseFormat `json:"response_format"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type responseFormat struct {
	Type       string      `json:"type"` // json_schema or json_object
	JSONSchema *jsonSchema `json:"json_schema,omitempty"`
}

type jsonSchema struct {
	Name   string `json:"name"`
	Strict bool   `json:"strict"`
	Schema any    `json:"schema"`
}

// completion is the part of the answer that is read. Servers that only resemble OpenAI's
// leave out the usage, or the reason why the text ends.
type completion struct {
	Choices []struct {
		FinishReason string `json:"finish_reason"`
		Message      struct {
			Content string `json:"content"`
			Refusal string `json:"refusal"`
		} `json:"message"`
	} `json:"choices"`
	Usage struct {
		TotalTokens float64 `json:"total_tokens"` // some count in 15.0
	} `json:"usage"`
}

// reply is the part of the answer's head that is read.
type reply struct {
	status     int // 0: there was no answer
	retryAfter string
}

// complete sends the prompt. An error beside a status of 2xx names the fault of the
// answer's body.
func (s server) complete(ctx context.Context, p prompt) (*completion, reply, error) {
	to, err := url.JoinPath(s.base, "chat/completions")
	if err != nil {
		return nil, reply{}, err
	}
	sent, err := json.Marshal(p)
	if err != nil {
		return nil, reply{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(sent))
	if err != nil {
		return nil, reply{}, err
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, reply{}, guard.Unquoted(err)
	}
	body := http.MaxBytesReader(nil, resp.Body, maxAnswer)
	defer func() {
		_, _ = io.Copy(io.Discard, body) // a body that is read to its end keeps the connection
		_ = resp.Body.Close()
	}()
	head := reply{resp.StatusCode, resp.Header.Get("Retry-After")}
	if head.status/100 != 2 {
		return nil, head, nil
	}
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != "application/json" &&
		!strings.HasSuffix(media, "+json") {
		return nil, head, fmt.Errorf("the answer is %q", media)
	}
	done := new(completion)
	return done, head, json.NewDecoder(body).Decode(done)
}

func (c *chat) prompt(q question, data string, plain bool) prompt {
	p := prompt{Model: c.model}
	task := q.task
	if plain {
		// The server does not know the schema, so the model must be told.
		document, _ := json.Marshal(q.schema.document) // a constant of ours
		task += "\n\nThe JSON object matches this JSON schema: " + string(document)
		p.ResponseFormat.Type = "json_object"
	} else {
		p.ResponseFormat = responseFormat{"json_schema", &jsonSchema{Name: q.schema.name, Strict: true, Schema: q.schema.document}}
	}
	p.Messages = []message{{"system", task}, {"user", data}}
	return p
}

// text is the answer, if it is a whole one.
func (c *completion) text() (string, error) {
	switch {
	case len(c.Choices) == 0:
		return "", fmt.Errorf("%w: it is empty", errMalformed)
	case c.Choices[0].Message.Refusal != "":
		return "", fmt.Errorf("%w: the model refused", errMalformed)
	case c.Choices[0].FinishReason != "stop" && c.Choices[0].FinishReason != "":
		return "", fmt.Errorf("%w: it is not whole", errMalformed)
	}
	return c.Choices[0].Message.Content, nil
}
