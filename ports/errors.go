package ports

import "errors"

// ErrNoRow means that a look-up found nothing. Use cases turn it into their resource's error code.
var ErrNoRow = errors.New("no such row")

// ErrReferenced means that a row was not deleted because others refer to it.
var ErrReferenced = errors.New("the row is still referred to")

// ErrLeaseLost means that a worker's lease has ended: another worker has claimed the operation, or the operation is final.
// Nothing was written.
var ErrLeaseLost = errors.New("the lease on the operation is lost")

// ErrReadOnly means that a View tried to write.
var ErrReadOnly = errors.New("a view cannot write")

// ErrUnavailable means that the store does not answer at the moment. Where that was noticed during a commit, nobody knows whether
// the transaction was committed; otherwise it was not.
var ErrUnavailable = errors.New("the metadata database does not answer")
