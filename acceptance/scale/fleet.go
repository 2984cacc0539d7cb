package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/ports"
)

// fleet is agents of servers in memory, behind the real protocol: TLS, JSON and one address each.
type fleet struct {
	fakes       *fakeagent.Fleet
	certificate cluster.Certificate

	mu       sync.Mutex
	servers  []*http.Server
	strange  map[string]int // what the agents were asked and do not know, and how often
	commands map[command.Kind]func(payload []byte, e command.Envelope) (command.Command, error)
}

func newFleet(of cluster.Certificate) *fleet {
	f := &fleet{
		fakes: fakeagent.New(system.NewClock()), certificate: of,
		commands: map[command.Kind]func([]byte, command.Envelope) (command.Command, error){}, strange: map[string]int{},
	}
	told[command.Backup](f)
	told[command.Close](f)
	told[command.Isolate](f)
	told[command.Purge](f)
	told[command.SetAccess](f)
	told[command.SetAllowlist](f)
	told[command.Configure](f)
	return f
}

// told has the agents understand a kind of commands.
func told[C command.Command](f *fleet) {
	var zero C
	f.commands[zero.About().Kind] = func(payload []byte, e command.Envelope) (command.Command, error) {
		var c C
		err := json.Unmarshal(payload, &c)
		command.Receive(&c, e)
		return c, err
	}
}

// start has the agent of a server listen, and returns its address.
func (f *fleet) start(of id.ServerID) (url string, err error) {
	agent, err := f.fakes.Agent(server.Server{ID: of})
	if err != nil {
		return "", err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/commands", func(w http.ResponseWriter, r *http.Request) { f.carryOut(w, r, agent) })
	asked[command.AskCapabilities](mux, agent)
	asked[command.StorageUse](mux, agent)
	asked[command.AskUsage](mux, agent)
	asked[command.AskApplied](mux, agent)
	asked[command.AskHeard](mux, agent)
	asked[command.Vouch](mux, agent)
	asked[command.SetAccounts](mux, agent)
	asked[command.SetArchiveKey](mux, agent)
	asked[command.DatabaseSize](mux, agent)
	asked[command.RoomForBackup](mux, agent)
	asked[command.DeleteBackup](mux, agent)
	asked[command.RereadBackup](mux, agent)
	asked[command.RecoveryWindow](mux, agent)
	asked[command.AskSnapshots](mux, agent)
	mux.HandleFunc(command.KeepSnapshot{}.Route().Pattern(), func(w http.ResponseWriter, r *http.Request) {
		var q command.KeepSnapshot
		protocol.ReadPath(&q, r.PathValue)
		text, err := agent.Send(r.Context(), q, r.ContentLength, r.Body)
		answer(w, text, err)
	})
	mux.HandleFunc(command.OpenSnapshot{}.Route().Pattern(), func(w http.ResponseWriter, r *http.Request) {
		var q command.OpenSnapshot
		protocol.ReadPath(&q, r.PathValue)
		file, err := agent.Open(r.Context(), q)
		if err != nil {
			answer(w, nil, err)
			return
		}
		defer file.Body.Close()
		w.Header().Set("Content-Length", strconv.FormatInt(file.Size, 10))
		_, _ = io.Copy(w, file.Body) // whoever asks sees that it is not whole
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		f.note(r.Method + " " + r.URL.Path)
		answer(w, nil, command.Refuse(command.ReasonNoRoute, "the agent does not know this"))
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	f.mu.Lock()
	f.servers = append(f.servers, s)
	f.mu.Unlock()
	go func() { _ = s.ServeTLS(listener, f.certificate.CertFile, f.certificate.KeyFile) }()
	return "https://" + listener.Addr().String(), nil
}

func (f *fleet) stop() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var failed error
	for _, s := range f.servers {
		failed = errors.Join(failed, s.Close())
	}
	return failed
}

func (f *fleet) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.strange[what]++
}

// unknown is an error where the agents were asked what they do not know: then the figures are not what an installation has.
func (f *fleet) unknown() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.strange) == 0 {
		return nil
	}
	return fmt.Errorf("the agents were asked what they do not know: %v", f.strange)
}

// asked has an agent answer a type of questions.
func asked[Q command.Question](mux *http.ServeMux, agent ports.Agent) {
	var zero Q
	mux.HandleFunc(zero.Route().Pattern(), func(w http.ResponseWriter, r *http.Request) {
		var q Q
		if protocol.HasBody(q) {
			if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
				answer(w, nil, command.Refuse(command.ReasonInvalid, "%v", err))
				return
			}
		}
		protocol.ReadPath(&q, r.PathValue)
		text, err := agent.Ask(r.Context(), q)
		answer(w, text, err)
	})
}

func (f *fleet) carryOut(w http.ResponseWriter, r *http.Request, agent ports.Agent) {
	var c protocol.Command
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		answer(w, nil, command.Refuse(command.ReasonInvalid, "%v", err))
		return
	}
	read, known := f.commands[c.Kind]
	if !known {
		f.note(string(c.Kind))
		answer(w, nil, command.Refuse(command.ReasonInvalid, "the agent does not know %s", c.Kind))
		return
	}
	of := id.OperationID(c.OperationID)
	what, err := read(c.Payload, command.Envelope{OperationID: of, Generation: c.Generation, Secrets: c.Secrets})
	if err != nil {
		answer(w, nil, command.Refuse(command.ReasonInvalid, "%v", err))
		return
	}
	result, err := agent.Do(r.Context(), ports.Fence{OperationID: of, Epoch: c.Epoch}, what)
	if err == nil {
		result, err = json.Marshal(protocol.Reply{Result: result})
	}
	answer(w, result, err)
}

// answer writes what an agent says, or why it does not do it.
func answer(w http.ResponseWriter, text []byte, err error) {
	status := http.StatusOK
	if err != nil {
		var refusal *command.Refusal
		if !errors.As(err, &refusal) {
			refusal = command.Refuse(command.ReasonFailed, "%v", err)
		}
		if text, err = json.Marshal(refusal); err != nil {
			panic(err) // it is two texts
		}
		status = http.StatusConflict
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// authority is the certificate that the control plane checks the agents by.
func (f *fleet) authority() (string, error) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(f.certificate.CertFile), "ca.crt"))
	return string(text), err
}
