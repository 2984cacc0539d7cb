package driver

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// secrets are texts that no log of the service may hold.
type secrets struct {
	mu    sync.Mutex
	known map[string]bool
}

// remembering is a transport to an API host that learns the secrets which answers tell.
type remembering struct {
	http.RoundTripper
	secrets *secrets
}

// told is a member that is a secret. None needs an escape in JSON.
var told = regexp.MustCompile(`"(?:password|secret|apiKey)":"([^"]+)"`)

// shortest is the length from which a text is no coincidence.
const shortest = 16

func (s *secrets) add(secret string) {
	if len(secret) < shortest {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]bool{}
	}
	s.known[secret] = true
}

// RoundTrip implements http.RoundTripper for answers that tell secrets.
func (s remembering) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.RoundTripper.RoundTrip(r)
	if err != nil || response.Header.Get("Content-Type") != "application/json" {
		return response, err
	}
	body, err := readBody(response)
	for _, found := range told.FindAllSubmatch(body, -1) {
		s.secrets.add(string(found[1]))
	}
	return response, err
}

// inLogs looks for every secret in every log file below a folder.
func (s *secrets) inLogs(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	logs := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".log") {
			return err
		}
		logs++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for secret := range s.known {
			if bytes.Contains(text, []byte(secret)) {
				return fmt.Errorf("%s holds a secret that begins with %.4s", filepath.Base(path), secret)
			}
		}
		return nil
	})
	if err == nil && (logs == 0 || len(s.known) == 0) {
		err = fmt.Errorf("%d logs were searched for %d secrets", logs, len(s.known))
	}
	return err
}
