#pragma once

#include "engine/engine.h"
#include "server/exchange.h"
#include "server/field_reader.h"
#include "server/openai_schema.h"

namespace afterglow {

/// What the endpoints of a model's text answer to a body's members; errors,
/// those of members nobody knows too, included.
/// Source: llama-server's endpoints of these names.
/// Thread: they take milliseconds for long texts; not for I/O threads.
using TextCall = Output(
    const Engine& engine, FieldReader& fields, const RequestDefaults& defaults
);

/// POST /tokenize: the token ids of `content`, with `with_pieces` each as
/// {id, piece}, where a piece that is no UTF-8 is a list of bytes.
TextCall tokenize;
/// POST /detokenize: the text of `tokens`, special ones included.
TextCall detokenize;
/// POST /apply-template: the prompt that the chat template makes of
/// `messages` and `tools`, the answer's beginning included.
TextCall apply_template;

}  // namespace afterglow
