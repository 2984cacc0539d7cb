package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Upload is a file that a customer sends piece by piece. It stands in a folder beside those of the databases, under a name that
// is made of two UUIDs.
type Upload struct {
	Database id.DatabaseID
	ID       id.UploadID
}

const partEnding = ".part"

// makeFolder makes a folder of the store's, durably.
func (s *Store) makeFolder(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make a folder of backups: %w", err)
	}
	return syncFolder(s.root)
}

func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func (s *Store) uploadPath(u Upload) (string, error) {
	if _, err := id.Parse[id.DatabaseID](string(u.Database)); err != nil {
		return "", fmt.Errorf("database ID: %w", err)
	}
	if _, err := id.Parse[id.UploadID](string(u.ID)); err != nil {
		return "", fmt.Errorf("upload ID: %w", err)
	}
	return filepath.Join(s.root, uploadsFolder, string(u.Database)+"_"+string(u.ID)+partEnding), nil
}

// CreateUpload makes the file of an upload, durably, where there is none, and returns how much of it is durable.
func (s *Store) CreateUpload(u Upload) (length int64, err error) {
	path, err := s.uploadPath(u)
	if err != nil {
		return 0, err
	}
	dir := filepath.Dir(path)
	if err := s.makeFolder(dir); err != nil {
		return 0, full(err)
	}
	if length, err = syncedLength(path, os.O_CREATE); err != nil {
		return 0, full(err)
	}
	return length, full(syncFolder(dir))
}

// UploadLength is how much of an upload is durable. UPLOAD_NOT_FOUND where there is none.
func (s *Store) UploadLength(u Upload) (int64, error) {
	path, err := s.uploadPath(u)
	if err != nil {
		return 0, err
	}
	return syncedLength(path, 0)
}

func syncedLength(path string, flags int) (length int64, err error) {
	file, err := openPlain(path, flags|os.O_WRONLY)
	if err != nil {
		return 0, err
	}
	length, err = file.Seek(0, io.SeekEnd) // first: more may come meanwhile
	return length, errors.Join(err, file.Sync(), file.Close())
}

// openPlain opens nothing but a file: no link, whoever has made it.
func openPlain(path string, flags int) (*os.File, error) {
	file, err := os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, noUpload(err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func noUpload(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(err, fault.UploadNotFound, "the upload does not exist")
	}
	return fmt.Errorf("open upload: %w", err)
}

// OpenUpload opens an upload for reading, with its length. UPLOAD_NOT_FOUND where there is none.
func (s *Store) OpenUpload(u Upload) (*os.File, int64, error) {
	path, err := s.uploadPath(u)
	if err != nil {
		return nil, 0, err
	}
	file, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// ErrNotThere says that an upload is not so long as whoever appends to it takes it to be.
var ErrNotThere = errors.New("the upload has another length")

// AppendUpload adds what src gives to the end of an upload, which must be at so many bytes, and returns how long it is then. What
// it has added is durable, also after an error, as where src breaks off or the reserve is touched. The caller bounds src, and has
// nobody else append.
func (s *Store) AppendUpload(u Upload, at int64, src io.Reader) (length int64, err error) {
	path, err := s.uploadPath(u)
	if err != nil {
		return 0, err
	}
	file, err := openPlain(path, os.O_WRONLY)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	length, err = file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	if length != at {
		return length, ErrNotThere
	}
	for {
		added, copied := s.appendPiece(file, src)
		length += added
		switch {
		case errors.Is(copied, io.EOF):
			return length, nil
		case copied != nil:
			return length, copied
		}
	}
}

// appendPiece adds at most checkEvery bytes and makes them durable: a long chunk leaves no more than that to be written at once.
// io.EOF says that there is no more.
func (s *Store) appendPiece(file *os.File, src io.Reader) (added int64, err error) {
	if err := s.room(); err != nil {
		return 0, err
	}
	buffer := make([]byte, copyBuffer)
	for added < checkEvery && err == nil {
		var n int
		n, err = src.Read(buffer[:min(copyBuffer, checkEvery-added)])
		written, failed := file.Write(buffer[:n])
		added += int64(written)
		if failed != nil {
			err = full(failed)
		}
	}
	if failed := file.Sync(); failed != nil {
		return added, full(failed)
	}
	return added, err
}

const copyBuffer = 64 << 10

// DeleteUpload removes an upload. It is no error if it does not exist.
func (s *Store) DeleteUpload(u Upload) error {
	path, err := s.uploadPath(u)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove upload: %w", err)
	}
	return nil
}

// Uploads are those that have a file.
func (s *Store) Uploads() (list []Upload, err error) {
	entries, err := os.ReadDir(filepath.Join(s.root, uploadsFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list uploads: %w", err)
	}
	for _, entry := range entries {
		name, _ := strings.CutSuffix(entry.Name(), partEnding)
		database, upload, _ := strings.Cut(name, "_")
		u := Upload{Database: id.DatabaseID(database), ID: id.UploadID(upload)}
		if path, err := s.uploadPath(u); err == nil && filepath.Base(path) == entry.Name() {
			list = append(list, u)
		}
	}
	return list, nil
}
