package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/config"
	"github.com/leani-go/leani/internal/progress"
)

// backend is what the commands need of the packages below.
type backend interface {
	// open opens the data directory of the settings. The caller closes the node.
	open(ctx context.Context, o nodeOptions) (node, error)
	// sources lists the files of the history sources, and how much of them is stored.
	sources(ctx context.Context, o nodeOptions) (sourcesReport, error)
	// restore puts a backup in place as the store of a data directory that has no database.
	restore(ctx context.Context, o nodeOptions, from string, copied bool) (restoreReport, error)
	// dumpSegment describes a segment file, page by page.
	dumpSegment(ctx context.Context, path string, out io.Writer) error
	// verifyArchive reads every object of an archive whose manifest is given. begin is told how many
	// blocks it has, and gives the observer.
	verifyArchive(ctx context.Context, path string, begin func(total uint64) func(progress.Count)) (archiveVerifyReport, error)
	// checkSegment reads every page of a segment file and proves what it can without others.
	checkSegment(ctx context.Context, path string) (segmentReport, error)
}

// nodeOptions say how to open a node.
type nodeOptions struct {
	settings *config.Config
	log      *slog.Logger
	// readOnly changes nothing in the data directory.
	readOnly bool
	// existing refuses a data directory without a store, where opening would make one.
	existing bool
}

// node is an open data directory and what commands do with it. All methods stop soon after
// their context is cancelled and return its error.
type node interface {
	// missing counts the blocks of a range that are not stored.
	missing(blocks chain.Range) uint64
	// fill makes every block of the range part of the store, in order, skipping what is
	// there. What was committed when it stops stays; the next call goes on from there. observe
	// takes the count of this call.
	fill(ctx context.Context, blocks chain.Range, observe func(progress.Count)) error
	// sourceFailures are the failures of sources in the last fill that others made good or, with
	// an error of fill, did not.
	sourceFailures() []sourceFailure
	// keptPartial counts the blocks of which the last fill kept partial material, and nothing else.
	keptPartial() uint64
	// prune removes blocks of the store.
	prune(ctx context.Context, req pruneRequest) (pruneReport, error)
	// export writes stored blocks as era files.
	export(ctx context.Context, req exportRequest, observe func(progress.Count)) (exportReport, error)
	// prove proves the stored blocks of a range, or of everything when it is empty.
	prove(ctx context.Context, blocks chain.Range, observe func(progress.Count)) (provedReport, error)
	// backup writes a copy of the store to a new directory.
	backup(ctx context.Context, out string, how backupRequest) (backupReport, error)
	// compact merges files and rewrites the database. observe is told what begins.
	compact(ctx context.Context, observe func(what string)) (compactReport, error)
	// status summarises what the store holds.
	status(ctx context.Context) (statusReport, error)
	// serve answers queries until the context is cancelled, and then returns nil. ready is
	// told the URL of each listener once it accepts connections.
	serve(ctx context.Context, ready func(url string)) error
	// inspect counts rows and files by what they are.
	inspect(ctx context.Context, out io.Writer) error
	// verify proves the store against itself: catalog, files, checksums and the roots in the
	// headers. Problems are part of the report; the error says that verifying failed.
	verify(ctx context.Context, observe func(progress.Count)) (verifyReport, error)
	// createArchive writes stored blocks as an archive of normalized frames.
	createArchive(ctx context.Context, req archiveRequest, observe func(progress.Count)) (archiveReport, error)
	// keys prints the rows of the database in key order, one a line.
	keys(ctx context.Context, out io.Writer) error
	// close releases the data directory.
	close() error
}

// withNode loads the settings, opens the node, and closes it after f.
func withNode(ctx context.Context, a *app, readOnly bool, f func(*config.Config, node) error) error {
	return withNodeOf(ctx, a, nodeOptions{readOnly: readOnly}, f)
}

// withStored is withNode for changes of a store that is there.
func withStored(ctx context.Context, a *app, f func(*config.Config, node) error) error {
	return withNodeOf(ctx, a, nodeOptions{existing: true}, f)
}

func withNodeOf(ctx context.Context, a *app, o nodeOptions, f func(*config.Config, node) error) error {
	cfg, err := a.settings()
	if err != nil {
		return err
	}
	o.settings, o.log = cfg, a.logger()
	n, err := a.backend.open(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(f(cfg, n), n.close())
}

// blockSpan is a run of blocks as users see it: both ends belong to it.
type blockSpan struct {
	From uint64 `json:"fromBlock"`
	To   uint64 `json:"toBlock"`
}

// statusReport is what history status prints.
type statusReport struct {
	ChainID      uint64      `json:"chainId"`
	Head         *blockName  `json:"head"` // null while nothing is retained
	Coverage     []blockSpan `json:"coverage"`
	Blocks       uint64      `json:"blocks"`
	Transactions uint64      `json:"transactions"`
	Logs         uint64      `json:"logs"`
	Files        uint64      `json:"files"`
	FileBytes    uint64      `json:"fileBytes"`
	Space        spaceReport `json:"space"`
	// Partial is material of blocks that are not whole. It is no part of the above but of files and space.
	Partial []partialReport `json:"partial"`
}

// spaceReport says what the store takes on disk, in bytes by class.
type spaceReport struct {
	Data      int64 `json:"data"`
	Index     int64 `json:"index"`
	Senders   int64 `json:"senders"`
	Frames    int64 `json:"frames"`   // partial material
	Replaced  int64 `json:"replaced"` // replaced files that are still held
	Temporary int64 `json:"temporary"`
	Database  int64 `json:"database"`
	Total     int64 `json:"total"`
}

// blockName names a block.
type blockName struct {
	Number uint64 `json:"number"`
	Hash   string `json:"hash"`
}

// verifyReport is what db verify prints.
type verifyReport struct {
	Blocks uint64 `json:"blocks"`
	Frames uint64 `json:"frames"` // of partial material
	Files  uint64 `json:"files"`
	Bytes  uint64 `json:"bytes"`
	// Digest is over the content of all blocks: stores with equal digests hold equal history.
	Digest   string   `json:"digest"`
	Problems []string `json:"problems"`
}

// segmentReport is what segment check prints.
type segmentReport struct {
	Kind     string    `json:"kind"`
	Blocks   blockSpan `json:"blocks"`
	Bytes    uint64    `json:"bytes"`
	Pages    uint64    `json:"pages"`
	Problems []string  `json:"problems"`
}
