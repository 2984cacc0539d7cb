package executor

import "github.com/go-json-experiment/json"

// decodeStrict refuses unknown and duplicate names, names in another letter case and trailing data.
func decodeStrict(text []byte, to any) error {
	return json.Unmarshal(text, to, json.RejectUnknownMembers(true))
}
