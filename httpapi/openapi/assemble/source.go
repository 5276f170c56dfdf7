package assemble

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v3"
)

// source is the content of the files, put together.
type source struct {
	doc *openapi3.T
	// order is the order of the keys in the files. Go's maps have none, but people read
	// the document from the top.
	order *order
}

// read puts the files together. Two files may both have paths and components, but not the
// same path or component.
func read(files, payloads fs.FS) (source, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return source{}, err
	}
	// The file that holds the document's head comes first.
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(-cmp.Compare(strings.Count(a, "openapi"), strings.Count(b, "openapi")), strings.Compare(a, b))
	})
	merged, keys := map[string]any{}, orderWith(map[string]int{})
	for _, name := range names {
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return source{}, err
		}
		var file yaml.Node
		if err := yaml.Unmarshal(raw, &file); err != nil {
			return source{}, fmt.Errorf("%s: %w", name, err)
		}
		if err := embedPayloads(&file, payloads); err != nil {
			return source{}, fmt.Errorf("%s: %w", name, err)
		}
		var content map[string]any
		if err := file.Decode(&content); err != nil {
			return source{}, fmt.Errorf("%s: %w", name, err)
		}
		if err := merge(merged, content); err != nil {
			return source{}, fmt.Errorf("%s: %w", name, err)
		}
		keys.learn(&file)
	}
	raw, err := json.Marshal(merged)
	if err != nil {
		return source{}, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		return source{}, err
	}
	return source{doc, keys}, nil
}

// embedPayloads puts the content of a file, which is JSON, in the place of each value with
// the tag !payload.
func embedPayloads(n *yaml.Node, payloads fs.FS) error {
	if n.Tag == "!payload" {
		raw, err := fs.ReadFile(payloads, n.Value)
		if err != nil {
			return err
		}
		var payload yaml.Node
		if err := yaml.Unmarshal(raw, &payload); err != nil {
			return fmt.Errorf("%s: %w", n.Value, err)
		}
		*n = *payload.Content[0]
		return nil
	}
	for _, below := range n.Content {
		if err := embedPayloads(below, payloads); err != nil {
			return err
		}
	}
	return nil
}

func merge(into, from map[string]any) error {
	for key, value := range from {
		old, stands := into[key]
		oldMap, ok := old.(map[string]any)
		newMap, both := value.(map[string]any)
		switch {
		case !stands:
			into[key] = value
		case ok && both:
			if err := merge(oldMap, newMap); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		default:
			return fmt.Errorf("%s stands twice", key)
		}
	}
	return nil
}

// order is the order of an object's keys, and of those below each.
type order struct {
	rank  map[string]int
	below map[string]*order
	// first ranks each key by its first place in any file. It orders keys that the files
	// do not have in the same place, such as those of completed refusals.
	first map[string]int
}

func orderWith(first map[string]int) *order {
	return &order{rank: map[string]int{}, below: map[string]*order{}, first: first}
}

func (o *order) at(key string) *order {
	if below := cmp.Or(o.below[key], o.below[strings.TrimPrefix(key, "x-")]); below != nil {
		return below
	}
	return orderWith(o.first)
}

func (o *order) meet(key string) *order {
	if o.below[key] == nil {
		o.rank[key] = len(o.rank)
		o.below[key] = orderWith(o.first)
	}
	_, met := o.first[key]
	if number := key != "" && key[0] <= '9'; !met && !number { // a status, or a place in a list
		o.first[key] = len(o.first)
	}
	return o.below[key]
}

func (o *order) learn(n *yaml.Node) {
	switch n.Kind {
	case yaml.DocumentNode:
		o.learn(n.Content[0])
	case yaml.AliasNode:
		o.learn(n.Alias)
	case yaml.SequenceNode:
		for i, entry := range n.Content {
			o.meet(strconv.Itoa(i)).learn(entry)
		}
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.Tag == "!!merge" {
				o.learn(value)
				continue
			}
			o.meet(key.Value).learn(value)
			if key.Value == "example" && value.Kind == yaml.MappingNode { // see nameExample
				o.meet("examples").meet("example").meet("value").learn(value)
			}
		}
	}
}

// compare puts the keys of the files first, in their order.
func (o *order) compare(a, b string) int {
	for _, ranks := range []map[string]int{o.rank, o.first} {
		rankA, knownA := ranks[a]
		rankB, knownB := ranks[b]
		switch {
		case knownA && knownB:
			return cmp.Compare(rankA, rankB)
		case knownA:
			return -1
		case knownB:
			return 1
		}
	}
	return strings.Compare(a, b)
}

// marshal writes a document with its keys in order.
func (o *order) marshal(doc *openapi3.T) ([]byte, error) {
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = o.write(&out, value)
	return out.Bytes(), err
}

func (o *order) write(out *bytes.Buffer, value any) error {
	switch value := value.(type) {
	case map[string]any:
		out.WriteByte('{')
		for i, key := range slices.SortedFunc(maps.Keys(value), o.compare) {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := o.write(out, key); err != nil {
				return err
			}
			out.WriteByte(':')
			if err := o.at(key).write(out, value[key]); err != nil {
				return err
			}
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for i, entry := range value {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := o.at(strconv.Itoa(i)).write(out, entry); err != nil {
				return err
			}
		}
		out.WriteByte(']')
	default:
		raw, err := json.Marshal(value)
		if err != nil {
			return err
		}
		out.Write(raw)
	}
	return nil
}
