package app

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// resultFields are a line for each value in an operation's result, in the API's order. Every kind of operation has its own
// members; a line is named by the path to its value, as in "Deletion backup size".
func resultFields(result json.RawMessage) []Field {
	return fieldsBelow("", result)
}

func fieldsBelow(path string, raw json.RawMessage) (fields []Field) {
	for _, m := range membersOf(raw) {
		name := strings.TrimSpace(path + " " + inWords(m.name))
		if raw := bytes.TrimSpace(m.value); len(raw) > 0 && raw[0] == '{' {
			fields = append(fields, fieldsBelow(name, raw)...)
			continue
		}
		fields = append(fields, Field{capital(name), resultValue(m)})
	}
	return fields
}

// jsonMember is one of a JSON object.
type jsonMember struct {
	name  string
	value json.RawMessage
}

// membersOf reads a JSON object in its order.
func membersOf(object json.RawMessage) (list []jsonMember) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return list
		}
		text, _ := name.(string)
		m := jsonMember{name: text}
		if decoder.Decode(&m.value) != nil {
			return list
		}
		list = append(list, m)
	}
	return list
}

// resultValue is a member's value as a record shows it; nil for one that says nothing.
func resultValue(m jsonMember) any {
	var text string
	var size int64
	var list []json.RawMessage
	var truth bool
	switch {
	case string(m.value) == "null":
		return nil
	case json.Unmarshal(m.value, &text) == nil:
		if t, err := time.Parse(time.RFC3339, text); err == nil {
			return t
		}
		return text
	case strings.HasSuffix(m.name, "Bytes") && json.Unmarshal(m.value, &size) == nil:
		return terminal.Size(size)
	case json.Unmarshal(m.value, &truth) == nil:
		return truth
	case json.Unmarshal(m.value, &list) == nil:
		return listed(list)
	}
	return string(m.value)
}

// listed joins the entries of a list; nil for none.
func listed(list []json.RawMessage) any {
	if len(list) == 0 {
		return nil
	}
	texts := make([]string, len(list))
	for i, raw := range list {
		if json.Unmarshal(raw, &texts[i]) != nil {
			texts[i] = string(raw)
		}
	}
	return strings.Join(texts, ", ")
}

// inWords is the name of a JSON member as people write it: "checksumSha256" is "checksum SHA-256". The unit in the name of a size
// is left out: the value has its own.
func inWords(name string) string {
	var b strings.Builder
	for i, r := range strings.TrimSuffix(name, "Bytes") {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	words := strings.Fields(b.String())
	for i, word := range words {
		switch word {
		case "id":
			words[i] = "ID"
		case "sha256":
			words[i] = "SHA-256"
		}
	}
	return strings.Join(words, " ")
}

func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
