package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/api/jsonrpc"
	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/config"
	"github.com/leani-go/leani/ingest"
	"github.com/leani-go/leani/ingest/archive"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/ondemand"
	"github.com/leani-go/leani/internal/regular"
	"github.com/leani-go/leani/serve/rpc"
)

// fetchedHistory is what the history sources have as the RPC server sees it. All methods that do not fetch take nil for
// none.
type fetchedHistory struct {
	fetcher   *ondemand.Fetcher
	abilities rpc.HistoryAbilities
	requests  int
}

// openFetchedHistory makes history on demand, nil where the settings do without.
func (n *storedNode) openFetchedHistory(ctx context.Context) (*fetchedHistory, error) {
	if n.settings.RPC.HistoricalMode != config.HistoricalOnDemand {
		return nil, nil
	}
	log := n.log.With("component", "on-demand")
	limits := onDemandLimits(n.settings, n.memory)
	temporary := onDemandTemporary(n.settings, limits.Requests)
	h := &fetchedHistory{abilities: rpc.HistoryAbilities{MaximumBlocks: limits.Blocks}, requests: limits.Requests}
	var sources []ondemand.Source
	for _, entry := range sourcesInOrder(n.settings) {
		if err := viable(ctx, n.settings, entry); err != nil {
			log.Warn("history source cannot answer requests", "source", entry.ID, "cause", err)
			continue
		}
		if err := localProblem(n.settings, entry); err != nil {
			log.Warn("history source is not there now; requests try it again", "source", entry.ID, "cause", err)
		}
		h.abilities.Sources = append(h.abilities.Sources, rpc.HistorySource{ID: entry.ID, Trust: string(entry.Claim())})
		sources = append(sources, ondemand.Source{Copied: entry.Mirror(), Candidate: ingest.Candidate{
			ID: entry.ID, Priority: int(entry.Priority), Open: func(ctx context.Context) (ingest.Source, error) {
				return openSourceTrying(ctx, n.settings, entry, temporary, onDemandAttempts, log)
			},
		}})
	}
	fetcher, err := ondemand.New(ondemand.Options{
		Sources: sources, ChainID: n.network.ChainID(), Check: n.checkChain, Limits: limits, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	h.fetcher = fetcher
	log.Info("blocks that are not retained are fetched", slog.Any("sources", sourceIDs(h.abilities.Sources)))
	return h, nil
}

func sourceIDs(sources []rpc.HistorySource) []string {
	ids := make([]string, len(sources))
	for i, s := range sources {
		ids[i] = s.ID
	}
	return ids
}

// onDemandLimits are those of the settings. docs/configuration.md describes them.
func onDemandLimits(c *config.Config, m memoryPlan) ondemand.Limits {
	l := ondemand.DefaultLimits().Within(m.pipeline)
	l.InputBytes = max(1, min(l.InputBytes, int64(min(c.Budgets.MemoryBytes, math.MaxInt64))/int64(c.Budgets.SourceConcurrency)))
	l.BlockBytes = min(l.BlockBytes, int64(min(c.RawHistory.MaximumFrameLogicalBytes, math.MaxInt64)))
	l.Reads = c.Budgets.SourceConcurrency
	return l
}

// onDemandFileBytes is the most that a file of a mirror may have.
const onDemandFileBytes = 512 * mib

// onDemandTemporary is the place of files that are fetched from mirrors for answers.
func onDemandTemporary(c *config.Config, requests int) *ingest.Temporary {
	total := int64(min(c.Budgets.TemporaryDiskBytes, math.MaxInt64))
	files := int64(ondemand.TemporaryFiles(requests))
	file := min(onDemandFileBytes, total/int64(c.Budgets.SourceConcurrency), total/temporaryShare/files)
	return ingest.NewTemporary(filepath.Join(c.DataDir, "temporary"), file*files).LimitFile(file)
}

// viable tells whether a source has whole, final blocks, as far as it says so itself. A manifest that cannot be read may be
// there later.
func viable(ctx context.Context, c *config.Config, entry *config.HistorySource) error {
	if entry.Kind != config.SourceArchive {
		return nil // files of whole blocks, final by what they are
	}
	source, err := archive.OpenSource(entry.Manifest, c.Chain.ChainID)
	if err == nil {
		_, err = source.Plan(ctx, chain.Range{})
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return nil
	}
	return err
}

// localProblem is why a source on this machine cannot be opened, and what to do. It opens one file and asks no mirror, so that it
// does not delay the start; a folder whose files are not what their list says shows in history sources.
func localProblem(c *config.Config, entry *config.HistorySource) error {
	switch {
	case entry.Mirror():
		return nil
	case entry.Kind == config.SourceArchive:
		if _, err := archive.OpenSource(entry.Manifest, c.Chain.ChainID); err != nil {
			return fmt.Errorf("%w: check the manifest of sources.history", err)
		}
		return nil
	}
	folder := filepath.Clean(entry.Folder)
	list, err := regular.Open(filepath.Join(folder, era.CatalogName))
	if err != nil {
		return explainFolder(folder, err)
	}
	return list.Close()
}

// checkChain refuses a block of another chain, as a fill does.
func (n *storedNode) checkChain(b *chain.Block) error {
	s := anchoredSink{network: n.network}
	if err := s.checkGenesis(b); err != nil {
		return err
	}
	return s.checkSigned(b)
}

// threads is how many threads of low priority are busy at a time.
func (h *fetchedHistory) threads() int {
	if h == nil {
		return 0
	}
	return ondemand.Threads(h.requests)
}

// close ends what is being fetched.
func (h *fetchedHistory) close() error {
	if h == nil {
		return nil
	}
	return h.fetcher.Close()
}

// Abilities implements rpc.History.
func (h *fetchedHistory) Abilities() rpc.HistoryAbilities { return h.abilities }

// NumberByHash implements rpc.History: no source finds blocks by hash.
func (h *fetchedHistory) NumberByHash(context.Context, common.Hash) (uint64, bool, error) {
	return 0, false, &rpc.HistoryError{Reason: jsonrpc.ReasonNoHistorySource, Err: errors.New("no source finds blocks by hash")}
}

// Fetch implements rpc.History.
func (h *fetchedHistory) Fetch(ctx context.Context, request rpc.HistoryRequest, reader rpc.HistoryReader) error {
	err := h.fetcher.Fetch(ctx, ondemand.Request{
		Runs: request.Runs, Senders: request.Parts&chain.PartSenders != 0, Impatient: request.Impatient,
	}, &fetchReader{reader, h.abilities.Sources})
	var (
		failure  *ondemand.Error
		busy     *ondemand.BusyError
		rejected *ondemand.RejectedError
	)
	switch {
	case errors.As(err, &rejected):
		return rejected.Err
	case errors.As(err, &busy):
		return &rpc.HistoryBusyError{Limit: uint64(busy.Limit)}
	case errors.As(err, &failure):
		return &rpc.HistoryError{Reason: reasonForClients(failure.Reason), Err: err}
	}
	return err
}

// reasonForClients is the word of a reason in answers.
func reasonForClients(r ondemand.Reason) string {
	switch r {
	case ondemand.TimedOut:
		return jsonrpc.ReasonHistoryTime
	case ondemand.Mismatched:
		return jsonrpc.ReasonHistoryHandoff
	case ondemand.Invalid:
		return jsonrpc.ReasonHistoryInvalid
	case ondemand.OverBudget:
		return jsonrpc.ReasonHistoryBudget
	case ondemand.NotHeld:
		return jsonrpc.ReasonNoHistorySource
	case ondemand.OutOfRange:
		return jsonrpc.ReasonHistoryRange
	}
	return jsonrpc.ReasonHistoryFailed
}

// fetchReader is the reader of the RPC server as a fetch knows it.
type fetchReader struct {
	rpc.HistoryReader
	sources []rpc.HistorySource
}

// Begin names the source as the server knows it.
func (r *fetchReader) Begin(id string) {
	for _, s := range r.sources {
		if s.ID == id {
			r.HistoryReader.Begin(s)
			return
		}
	}
}

// Block passes a block on.
func (r *fetchReader) Block(b *chain.Block) error {
	err := r.HistoryReader.Block(b)
	var rejection *rpc.HistoryRejection
	if !errors.As(err, &rejection) {
		return err
	}
	reason := ondemand.Invalid
	if rejection.Reason == jsonrpc.ReasonHistoryHandoff {
		reason = ondemand.Mismatched
	}
	return &ondemand.RejectedError{Reason: reason, Err: rejection}
}
