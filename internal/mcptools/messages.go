package mcptools

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Fault is an error as a message. The id is that of the request, as it came; the library
// would make another one of it.
func Fault(id json.RawMessage, refusal *jsonrpc.Error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	encoded, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": refusal}) // the id came as JSON
	return encoded
}

// Judge says whether raw is one message that the library can take. Its id comes back as it
// was sent, so it is a text or a number that the library keeps.
func Judge(raw []byte) (id json.RawMessage, refusal *jsonrpc.Error) {
	refuse := func(code int64, message string) (json.RawMessage, *jsonrpc.Error) {
		return id, &jsonrpc.Error{Code: code, Message: message}
	}
	var message struct {
		ID json.RawMessage `json:"id"`
	}
	switch {
	case !json.Valid(raw):
		return refuse(jsonrpc.CodeParseError, "the message is no JSON")
	case !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")):
		return refuse(jsonrpc.CodeInvalidRequest, "it has to be one message, as one JSON object. Send each message of a batch by itself")
	}
	if err := json.Unmarshal(raw, &message); err != nil {
		return refuse(jsonrpc.CodeInvalidRequest, err.Error())
	}
	id = message.ID
	if number, err := strconv.ParseInt(string(id), 10, 64); id != nil && id[0] != '"' && (err != nil || int64(float64(number)) != number) {
		return refuse(jsonrpc.CodeInvalidRequest, "the id has to be a text, or a whole number of 53 bits")
	}
	if _, err := jsonrpc.DecodeMessage(raw); err != nil {
		return refuse(jsonrpc.CodeInvalidRequest, err.Error())
	}
	return id, nil
}

// addTool adds a tool whose input every client can read: some refuse all tools of a session
// where one property has several types.
func addTool[In, Out any](to *sdk.Server, tool *sdk.Tool, call sdk.ToolHandlerFor[In, Out]) {
	input, err := jsonschema.For[In](nil)
	if err != nil {
		panic(err) // of a type of ours
	}
	for _, property := range input.Properties {
		if n := len(property.Types); n > 0 { // null, and one more
			property.Type, property.Types = property.Types[n-1], nil
		}
	}
	tool.InputSchema = input
	sdk.AddTool(to, tool, call)
}
