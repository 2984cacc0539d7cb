// Package s3 keeps blobs in a bucket of an object store that speaks S3.
package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/pgherd/pgherd/agent/blob"
)

// Config says where a bucket is. It must exist: retention, object lock, versions, and the end of uploads that were never finished
// are set there.
type Config struct {
	// Endpoint is the URL of the store, with https and without a path.
	Endpoint string
	Bucket   string
	// Prefix begins the key of each object, with a slash after it; empty: none. No two agents have the same.
	Prefix string
	// Region is what requests are signed for; empty means us-east-1.
	Region string
	// PathStyle names the bucket in the path, and not in the host.
	PathStyle bool
	// CAFile has the certificates, as PEM, of the authorities that are trusted; empty: those of the system.
	CAFile string
	// AccessKeyID and SecretKeyFile are the credentials. The file may change: a request reads it when it has.
	AccessKeyID   string
	SecretKeyFile string
	// Stall is how long nothing may move on a connection that is at work; 0 means 30 s.
	Stall time.Duration
}

const (
	defaultStall  = 30 * time.Second
	defaultRegion = "us-east-1"
	// partSize is that of the parts of a large object, and of what is read at once.
	partSize = 16 << 20
	// partsAtOnce bounds memory with partSize.
	partsAtOnce = 2
	// requestTries is how often a request is sent that may succeed if it is sent again.
	requestTries = 4
	// late is how long an object may still appear whose upload was under way when its process ended: far more than a store waits for
	// the rest of a request.
	late = 24 * time.Hour
)

// Store implements blob.Store.
type Store struct {
	config Config
	client *minio.Core
}

// New returns the store in a bucket. Nothing is asked of it yet; the CA file and the file of the secret key are read.
func New(c Config) (*Store, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("the endpoint %q must be a URL like https://s3.example.com", c.Endpoint)
	}
	if c.Prefix != "" {
		if err := blob.CheckName(c.Prefix); err != nil {
			return nil, fmt.Errorf("the prefix %q must be of letters, digits, \"_\", \"-\", \".\", and slashes between them", c.Prefix)
		}
	}
	secret := &secretFile{id: c.AccessKeyID, path: c.SecretKeyFile}
	if _, err := secret.RetrieveWithCredContext(nil); err != nil {
		return nil, err
	}
	if c.Region == "" {
		c.Region = defaultRegion
	}
	transport, err := NewTransport(c)
	if err != nil {
		return nil, err
	}
	lookup := minio.BucketLookupDNS
	if c.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.NewCore(u.Host, &minio.Options{
		Creds: credentials.New(secret), Secure: true, Transport: transport, Region: c.Region, BucketLookup: lookup,
		MaxRetries: requestTries,
	})
	if err != nil {
		return nil, err
	}
	return &Store{config: c, client: client}, nil
}

// secretFile provides credentials from a file, again whenever that has changed.
type secretFile struct {
	id, path string
	read     time.Time // when the file was last changed that was read
}

// Retrieve implements credentials.Provider.
func (s *secretFile) Retrieve() (credentials.Value, error) { return s.RetrieveWithCredContext(nil) }

// RetrieveWithCredContext implements credentials.Provider.
func (s *secretFile) RetrieveWithCredContext(*credentials.CredContext) (v credentials.Value, err error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return v, fmt.Errorf("the secret key of the object store: %w", err)
	}
	text, err := os.ReadFile(s.path)
	if err != nil {
		return v, fmt.Errorf("the secret key of the object store: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if s.id == "" || secret == "" {
		return v, errors.New("the object store needs the ID of an access key, and a file with its secret key")
	}
	s.read = info.ModTime()
	return credentials.Value{AccessKeyID: s.id, SecretAccessKey: secret, SignerType: credentials.SignatureV4}, nil
}

// IsExpired implements credentials.Provider.
func (s *secretFile) IsExpired() bool {
	info, err := os.Stat(s.path)
	return err == nil && !info.ModTime().Equal(s.read)
}

func (s *Store) key(name string) (string, error) {
	if err := blob.CheckName(name); err != nil {
		return "", err
	}
	return s.prefix() + name, nil
}

func (s *Store) prefix() string {
	if s.config.Prefix == "" {
		return ""
	}
	return s.config.Prefix + "/"
}

// Move implements blob.Store.
func (s *Store) Move(ctx context.Context, path, name string) error {
	return s.move(ctx, path, name, minio.PutObjectOptions{PartSize: partSize, NumThreads: partsAtOnce})
}

// MoveNew implements blob.Store. The object is sent at once, whatever its size, under a condition.
func (s *Store) MoveNew(ctx context.Context, path, name string) error {
	options := minio.PutObjectOptions{DisableMultipart: true}
	options.SetMatchETagExcept("*")
	err := s.move(ctx, path, name, options)
	if response := answer(err); response.StatusCode == http.StatusPreconditionFailed || response.Code == minio.PreconditionFailed {
		return blob.ErrExists
	}
	return err
}

func (s *Store) move(ctx context.Context, path, name string, options minio.PutObjectOptions) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	options.ContentType = "application/octet-stream"
	put, err := s.client.Client.PutObject(ctx, s.config.Bucket, key, file, info.Size(), options)
	if err != nil {
		return err
	}
	if put.Size != info.Size() {
		return fmt.Errorf("the object store took %d of %d bytes", put.Size, info.Size())
	}
	return os.Remove(path)
}

// Open implements blob.Store.
func (s *Store) Open(ctx context.Context, name string) (io.ReadCloser, blob.Info, error) {
	key, err := s.key(name)
	if err != nil {
		return nil, blob.Info{}, err
	}
	info, err := s.client.StatObject(ctx, s.config.Bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return nil, blob.Info{}, unlessMissing(err)
	}
	r := &reader{ctx: ctx, store: s, key: key, etag: info.ETag, size: info.Size}
	return r, blob.Info{Name: name, Bytes: info.Size, ChangedAt: info.LastModified}, nil
}

// List implements blob.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (list []blob.Info, more bool, err error) {
	if after != "" {
		after = s.prefix() + after
	}
	objects := s.client.ListObjectsIter(ctx, s.config.Bucket, minio.ListObjectsOptions{
		Prefix: s.prefix() + prefix, Recursive: true, StartAfter: after, MaxKeys: min(limit+1, blob.ListLimit),
	})
	for o := range objects {
		if o.Err != nil {
			return nil, false, o.Err
		}
		name := strings.TrimPrefix(o.Key, s.prefix())
		if blob.CheckName(name) != nil {
			continue
		}
		if len(list) == limit {
			return list, true, nil
		}
		list = append(list, blob.Info{Name: name, Bytes: o.Size, ChangedAt: o.LastModified})
	}
	return list, false, ctx.Err()
}

// Delete implements blob.Store.
func (s *Store) Delete(ctx context.Context, name string) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	err = s.client.RemoveObject(ctx, s.config.Bucket, key, minio.RemoveObjectOptions{})
	if errors.Is(unlessMissing(err), blob.ErrNotFound) {
		return nil
	}
	return err
}

// Clean implements blob.Store. What is sent at once, and not in parts, leaves nothing.
func (s *Store) Clean(ctx context.Context, keep func(name string) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs []error
	for u := range s.client.ListIncompleteUploads(ctx, s.config.Bucket, s.prefix(), true) {
		switch {
		case u.Err != nil:
			errs = append(errs, u.Err)
		case !keep(strings.TrimPrefix(u.Key, s.prefix())):
			errs = append(errs, s.client.AbortMultipartUpload(ctx, s.config.Bucket, u.Key, u.UploadID))
		}
	}
	return errors.Join(errs...)
}

// Late implements blob.Store.
func (*Store) Late() time.Duration { return late }

func unlessMissing(err error) error {
	if r := answer(err); r.Code == minio.NoSuchKey || r.Code == "NotFound" {
		return fmt.Errorf("%w: %w", blob.ErrNotFound, err)
	}
	return err
}

// answer is what the store has answered, where it has.
func answer(err error) minio.ErrorResponse {
	var response minio.ErrorResponse
	if errors.As(err, &response) {
		return response
	}
	return minio.ErrorResponse{}
}

var _ blob.Store = (*Store)(nil)
