package pgbackrest

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

const (
	configFile = "pgbackrest.conf"
	caFile     = "ca.pem"
)

// refreshed writes the configuration anew where a file that it follows has changed.
func (e *Engine) refreshed() error {
	if e.s.S3 == nil {
		return nil
	}
	var newest time.Time
	for _, file := range []string{e.s.S3.SecretKeyFile, e.s.S3.CAFile} {
		if info, err := os.Stat(file); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if newest.Equal(e.follows) {
		return nil
	}
	if err := e.configure(); err != nil {
		return err
	}
	e.follows = newest
	return nil
}

// configure writes the configuration, with the secrets: those are in no command line.
func (e *Engine) configure() error {
	s, p := e.s, e.s.Postgres
	options := [][2]string{
		{"lock-path", e.path("lock")}, {"log-path", e.path("log")}, {"spool-path", e.path("spool")},
		{"log-level-file", "off"}, {"log-level-console", "off"}, {"log-level-stderr", "warn"}, {"log-timestamp", "n"},
		{"compress-type", "zst"}, {"compress-level", "3"}, {"process-max", "2"}, {"start-fast", "y"},
		{"archive-async", "n"}, {"archive-timeout", "300"}, {"io-timeout", "10"},
		{"repo1-bundle", "y"}, {"repo1-block", "y"},
		{"repo1-cipher-type", "aes-256-cbc"}, {"repo1-cipher-pass", s.Passphrase},
		{"repo1-retention-full-type", "time"}, {"repo1-retention-full", strconv.Itoa(max(1, s.Days))},
	}
	repository := s.Repository
	if s.S3 == nil {
		options = append(options, [2]string{"repo1-type", "posix"})
	} else {
		repository = "/" + strings.Trim(path.Join(s.S3.Prefix, s.Repository), "/")
		secret, err := os.ReadFile(s.S3.SecretKeyFile)
		if err != nil {
			return err
		}
		style := "host"
		if s.S3.PathStyle {
			style = "path"
		}
		store, err := url.Parse(s.S3.Endpoint)
		if err != nil {
			return err
		}
		options = append(options, [][2]string{
			{"repo1-type", "s3"}, {"repo1-s3-endpoint", store.Hostname()}, {"repo1-storage-port", cmp.Or(store.Port(), "443")},
			{"repo1-s3-bucket", s.S3.Bucket},
			{"repo1-s3-region", cmp.Or(s.S3.Region, "us-east-1")}, {"repo1-s3-uri-style", style},
			{"repo1-s3-key", s.S3.AccessKeyID}, {"repo1-s3-key-secret", strings.TrimSpace(string(secret))},
		}...)
		if s.S3.CAFile != "" { // as a copy, which the program may read
			authorities, err := os.ReadFile(s.S3.CAFile)
			if err != nil {
				return err
			}
			if err := e.write(caFile, string(authorities)); err != nil {
				return err
			}
			options = append(options, [2]string{"repo1-storage-ca-file", e.path(caFile)})
		}
	}
	options = append(options, [2]string{"repo1-path", repository})
	var text strings.Builder
	text.WriteString("# Written by the pgherd agent.\n[global]\n")
	for _, o := range options {
		if strings.ContainsAny(o[1], "\r\n") {
			return fmt.Errorf("%s has more than one line", o[0])
		}
		fmt.Fprintf(&text, "%s=%s\n", o[0], o[1])
	}
	fmt.Fprintf(&text, "\n[%s]\npg1-path=%s\npg1-port=%d\npg1-user=%s\npg1-database=%s\n",
		stanza, p.DataDir, p.Port, p.User, p.Database)
	return e.write(configFile, text.String())
}
