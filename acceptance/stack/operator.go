package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// command runs one command of the program to its end.
func (s *Stack) command(ctx context.Context, args ...string) ([]byte, error) {
	return s.commandWith(ctx, nil, args...)
}

func (s *Stack) commandWith(ctx context.Context, more []string, args ...string) ([]byte, error) {
	return s.run(ctx, s.options.Binary, more, args...)
}

func (s *Stack) run(ctx context.Context, program string, more []string, args ...string) ([]byte, error) {
	return s.runOn(ctx, Place{}, program, more, args...)
}

// runOn runs it in a place.
func (s *Stack) runOn(ctx context.Context, on Place, program string, more []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var said, failed bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(s.environment(), more...), &said, &failed
	err := on.start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return said.Bytes(), fmt.Errorf("pgherd %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(failed.Bytes()))
	}
	return said.Bytes(), nil
}

// Use has whatever starts from now on be another program.
func (s *Stack) Use(binary string) { s.options.Binary = binary }

// Upgrade does what an operator does before the hosts and the agent are replaced.
func (s *Stack) Upgrade(ctx context.Context) error {
	if _, err := s.command(ctx, "migrate"); err != nil {
		return err
	}
	return s.prepareServer(ctx)
}

// OperatorEnvironment is that of the operator's commands.
func (s *Stack) OperatorEnvironment() []string { return s.environment() }

// Admin runs a command of the operator's and returns the fields of its answer.
func (s *Stack) Admin(ctx context.Context, args ...string) (fields map[string]any, err error) {
	err = s.admin(ctx, &fields, args)
	return fields, err
}

// AdminList does the same for a command that answers with a list.
func (s *Stack) AdminList(ctx context.Context, args ...string) (list []map[string]any, err error) {
	err = s.admin(ctx, &list, args)
	return list, err
}

func (s *Stack) admin(ctx context.Context, answer any, args []string) error {
	out, err := s.command(ctx, append([]string{"admin", "--json"}, args...)...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, answer); err != nil {
		return fmt.Errorf("pgherd admin %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// RecoverServer has the databases of the first server, which is gone, made anew on another one.
func (s *Stack) RecoverServer(ctx context.Context, on string, more ...string) error {
	_, err := s.command(ctx, append([]string{
		"admin", "--json", "server", "recover", "--server", s.serverID, "--on", on, "--reason", "it burned", "--yes",
	}, more...)...)
	return err
}

// ServerID is the stack's server, as the service knows it.
func (s *Stack) ServerID() string { return s.serverID }

// CheckServer has an operator's check of the stack's server find nothing wrong.
func (s *Stack) CheckServer(ctx context.Context) error {
	out, err := s.command(ctx, "admin", "server", "check", "--server", s.serverID)
	if err == nil && bytes.Contains(out, []byte(" wrong ")) {
		err = fmt.Errorf("the check has exit status 0: %s", out)
	}
	return err
}

// CheckStorage has an operator's check say what is wrong where the stack's agent keeps backups; empty: nothing is.
func (s *Stack) CheckStorage(ctx context.Context) (wrong string, err error) {
	out, failed := s.command(ctx, "admin", "--json", "storage", "check", "--server", s.serverID)
	var all []struct {
		Wrong string `json:"wrong"`
	}
	if err := json.Unmarshal(out, &all); err != nil || len(all) != 1 {
		return "", errors.Join(fmt.Errorf("%d servers were checked: %s", len(all), out), err, failed)
	}
	if wrong = all[0].Wrong; (wrong != "") != (failed != nil) {
		err = fmt.Errorf("the check says %q and ends with %w", wrong, failed)
	}
	return wrong, err
}

// Account is an account with its owner's address, and a full-account key.
type Account struct{ ID, Email, Key string }

// NewAccount makes an account on a plan that may have so many databases; 0 for what the plan gives. The name makes the mail
// address, so it must be new.
func (s *Stack) NewAccount(ctx context.Context, name, plan string, databases int) (Account, error) {
	a := Account{Email: name + "@example.com"}
	made, err := s.Admin(ctx, "account", "create", "--email", a.Email, "--name", name, "--plan", plan)
	if err != nil {
		return Account{}, err
	}
	a.ID = fmt.Sprint(made["accountId"])
	if databases > 0 {
		if err := s.SetQuota(ctx, a, databases); err != nil {
			return a, err
		}
	}
	a.Key, err = s.NewKey(ctx, a)
	return a, err
}

// NewKey makes one more full-account key.
func (s *Stack) NewKey(ctx context.Context, a Account) (string, error) {
	key, err := s.Admin(ctx, "key", "create", "--account", a.ID, "--label", "test", "--scope", "full")
	return fmt.Sprint(key["apiKey"]), err
}

// NewCIKey makes a namespace of an account, and a preview CI key of it.
func (s *Stack) NewCIKey(ctx context.Context, a Account, namespace string) (string, error) {
	made, err := s.Admin(ctx, "ci-namespace", "create", "--account", a.ID, "--name", namespace)
	if err != nil {
		return "", err
	}
	key, err := s.Admin(ctx, "ci-key", "create", "--namespace", fmt.Sprint(made["namespaceId"]))
	return fmt.Sprint(key["apiKey"]), err
}

// SetQuota changes how many databases an account may have.
func (s *Stack) SetQuota(ctx context.Context, a Account, databases int) error {
	_, err := s.Admin(ctx, "account", "set", "--account", a.ID, "--max-databases", strconv.Itoa(databases))
	return err
}

// QualifyExtensions has the stack's server prove that backups with extensions are restorable.
func (s *Stack) QualifyExtensions(ctx context.Context) error {
	_, err := s.command(ctx, "admin", "extensions", "qualify", "--server", s.serverID)
	return err
}
