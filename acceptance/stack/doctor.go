package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
)

// Difference is a line of the doctor's.
type Difference struct {
	Code       string `json:"code"`
	Notice     bool   `json:"notice"` // of something that customers may do
	DatabaseID string `json:"databaseId"`
	Finding    string `json:"finding"`
	Repair     string `json:"repair"`
	Outcome    string `json:"outcome"`
}

// Patient is what the doctor looks at.
type Patient interface {
	// Doctor compares servers with the metadata, and returns what differs.
	Doctor(ctx context.Context, flags ...string) ([]Difference, error)
}

// Healthy returns an error for each thing that differs, beside what customers may do. A clean look takes a moment; what differs
// is looked at again for some seconds.
func Healthy(ctx context.Context, p Patient) error {
	found, err := p.Doctor(ctx)
	for _, d := range found {
		if !d.Notice {
			err = errors.Join(err, fmt.Errorf("the doctor finds %s: %s", d.Code, d.Finding))
		}
	}
	return err
}

// Doctor looks at the stack's server, or at the one that flags name.
func (s *Stack) Doctor(ctx context.Context, flags ...string) ([]Difference, error) {
	return doctor(ctx, s.options.Binary, s.environment(), append([]string{"--server", s.serverID}, flags...)...)
}

// Doctor looks at the host's server.
func (d *Dev) Doctor(ctx context.Context, flags ...string) ([]Difference, error) {
	return doctor(ctx, d.options.Binary, d.OperatorEnvironment(), flags...)
}

func doctor(ctx context.Context, binary string, environment []string, flags ...string) (found []Difference, err error) {
	cmd := exec.CommandContext(ctx, binary, append([]string{"admin", "--json", "doctor"}, flags...)...)
	var said, failed bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = environment, &said, &failed
	ended := cmd.Run()
	if err := json.Unmarshal(said.Bytes(), &found); err != nil {
		return nil, fmt.Errorf("pgherd admin doctor: %w: %w: %s", ended, err, bytes.TrimSpace(failed.Bytes()))
	}
	left := slices.ContainsFunc(found, func(d Difference) bool { return d.Outcome != "repaired" && !d.Notice })
	if left != (ended != nil) {
		return found, fmt.Errorf("pgherd admin doctor found %d differences, and ended with %w", len(found), ended)
	}
	return found, nil
}
